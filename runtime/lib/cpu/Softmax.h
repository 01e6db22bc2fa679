//===- Softmax.h - Exponentials of rows, vectorized -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_SOFTMAX_H
#define TPRT_LIB_CPU_SOFTMAX_H

#include <cstdint>

namespace tprt {

/// Rows of scores are padded to a multiple of this many elements.
inline constexpr int64_t softmaxPadding = 16;

/// Replaces `count` elements, a multiple of softmaxPadding, by exp(x - their
/// maximum), and returns the number to divide them by: their sum, or 1 if all
/// elements are -inf, which become 0. It is NaN if an element is. The error is
/// within 2 units in the last place, and the bits are the same on every CPU
/// that has fused multiply-adds. `maximum` becomes that of the elements, -inf if
/// there are none.
float exponentiate(float *row, int64_t count, float &maximum);
double exponentiate(double *row, int64_t count, double &maximum);

/// Computes a row's probabilities p, which are `exponentials` divided by `sum`,
/// and the gradient of its scores, p * (w - Σ p * w). w is the gradient of the
/// probabilities, in `gradient`. The results replace `exponentials` and
/// `gradient`. `count` is a multiple of softmaxPadding.
void softmaxGradient(float *exponentials, float sum, float *gradient,
                     int64_t count);
void softmaxGradient(double *exponentials, double sum, double *gradient,
                     int64_t count);

/// The same for some of the elements of rows: the probabilities are
/// `exponentials` times `factor`, and `mean` is Σ p * w of all elements.
void softmaxGradient(float *exponentials, float factor, float mean,
                     float *gradient, int64_t count);
void softmaxGradient(double *exponentials, double factor, double mean,
                     double *gradient, int64_t count);

} // namespace tprt

#endif // TPRT_LIB_CPU_SOFTMAX_H
