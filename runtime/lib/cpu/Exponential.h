//===- Exponential.h - e^x of sixteen numbers at once -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_EXPONENTIAL_H
#define TPRT_LIB_CPU_EXPONENTIAL_H

#include "support/Multiversion.h"

#include <cstdint>

namespace tprt {

// Always sixteen lanes, so that results don't depend on the width of the CPU's
// vectors.
typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef float LanesInMemory
    __attribute__((vector_size(64), aligned(4), may_alias));

inline constexpr int64_t numLanes = sizeof(Lanes) / sizeof(float);

/// `x` where `mask` has ones, 0 elsewhere.
TPRT_INLINE Lanes keep(IntLanes mask, Lanes x) {
  return reinterpret_cast<Lanes>(reinterpret_cast<IntLanes>(x) & mask);
}

/// x = e^x for x <= 0, within 2 units in the last place: 2^n times a polynomial
/// in x - n ln 2, with the coefficients of Cephes. Multiplies by 2^n in two
/// steps: the first one is exact, so that a denormal result is rounded only
/// once.
TPRT_INLINE void exponentiate(Lanes &x) {
  constexpr float lowest = -104.0f;    // below it, 0
  constexpr float shift = 12582912.0f; // adding it rounds to an integer
  x = x < lowest ? Lanes{} + lowest : x;
  Lanes shifted = x * 1.44269504f + shift;
  Lanes n = shifted - shift;
  Lanes r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // The integer is in the low bits of the shifted number.
  IntLanes whole = reinterpret_cast<IntLanes>(shifted) - 0x4b400000;
  IntLanes half = whole >> 1;
  IntLanes first = (half + 127) << 23, second = (whole - half + 127) << 23;
  x = p * reinterpret_cast<Lanes>(first) * reinterpret_cast<Lanes>(second);
}

} // namespace tprt

#endif // TPRT_LIB_CPU_EXPONENTIAL_H
