//===- Activation.h - What products end with, vectorised --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_ACTIVATION_H
#define TPRT_LIB_CPU_ACTIVATION_H

#include <cstdint>

namespace tprt {

/// Replaces every element of a rows x columns matrix with unit column stride by
/// its `activation`, a tprt_activation, and multiplies it by that of `factor`,
/// where it isn't null, a matrix like it. NaN stays NaN. An element's result
/// depends neither on where it stands nor on how many there are. In f32, an
/// activation is within 4 units in the last place of the larger of itself and
/// f32's rounding of 1e-3 of its argument.
void activate(int64_t activation, int64_t rows, int64_t columns, float *c,
              int64_t rowC, const float *factor, int64_t rowFactor);
void activate(int64_t activation, int64_t rows, int64_t columns, double *c,
              int64_t rowC, const double *factor, int64_t rowFactor);

} // namespace tprt

#endif // TPRT_LIB_CPU_ACTIVATION_H
