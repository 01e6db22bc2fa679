//===- Activation.h - Vectorized GEMM activations ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_ACTIVATION_H
#define TPRT_LIB_CPU_ACTIVATION_H

#include <cstdint>

namespace tprt {

/// Applies `activation`, a tprt_activation, to every element of a rows x
/// columns matrix with unit column stride. If `factor`, a matrix of the same
/// shape, isn't null, multiplies each result by its element. NaN stays NaN. An
/// element's result depends neither on its position nor on the number of
/// elements. In f32, the error of an activation is at most 4 units in the last
/// place, either of its value or of 1e-3 times its argument, whichever is
/// larger.
void activate(int64_t activation, int64_t rows, int64_t columns, float *c,
              int64_t rowC, const float *factor, int64_t rowFactor);
void activate(int64_t activation, int64_t rows, int64_t columns, double *c,
              int64_t rowC, const double *factor, int64_t rowFactor);

} // namespace tprt

#endif // TPRT_LIB_CPU_ACTIVATION_H
