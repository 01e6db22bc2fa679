//===- Division.h - Division that rounds up ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_DIVISION_H
#define TPRT_LIB_SUPPORT_DIVISION_H

#include <cstdint>

namespace tprt {

/// a / b, rounded up, for a >= 0 and b > 0.
constexpr int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The smallest multiple of `unit` that is at least `value`.
constexpr int64_t alignTo(int64_t value, int64_t unit) {
  return divideCeil(value, unit) * unit;
}

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_DIVISION_H
