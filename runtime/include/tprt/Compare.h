//===- Compare.h - Comparison of results ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_COMPARE_H
#define TPRT_COMPARE_H

#include "tprt/Tensor.h"

namespace tprt {

struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-8;
};

struct Difference {
  Shape index;
  double got;
  double expected;
};

struct Comparison {
  int64_t numElements = 0;
  int64_t numDifferent = 0; ///< beyond the tolerance
  double maxAbsolute =
      0; ///< over all elements; NaN instead of a number counts as infinity
  std::vector<Difference>
      largest; ///< the worst of those that differ, worst first

  bool matches() const { return numDifferent == 0; }
};

/// Compares like NumPy's allclose(equal_nan=True): |got - expected| <= absolute
/// + relative * |expected| for floats, equal for integers. The shapes must be
/// the same and the types too, except that a bf16 result may be compared with
/// f32; an input error says so otherwise.
TPRT_API Comparison compare(const Tensor &got, const Tensor &expected,
                            Tolerance tolerance, size_t maxDifferences = 8);

} // namespace tprt

#endif // TPRT_COMPARE_H
