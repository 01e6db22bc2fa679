//===- StridedCopy.h - Boxes of two row-major tensors, by runs --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slicing weights, gathering outputs and all data movement of collectives are
// copies (or reductions) between a box of one tensor and the box of the same
// size of another. Both are traversed in contiguous runs.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_SUPPORT_STRIDEDCOPY_H
#define TPRT_LIB_SUPPORT_STRIDEDCOPY_H

#include "tprt/Tensor.h"

#include <cstring>

namespace tprt {

/// The position of a box: the shape of the tensor around it and its first
/// index.
struct Place {
  const Shape &shape;
  const Shape &offset;
};

/// The traversal of a box of tensor a and one of tensor b, of the same size, by
/// runs that are contiguous in both. Computed once and used often. All numbers
/// count elements.
class StridedCopy {
public:
  StridedCopy(const Shape &size, Place a, Place b);

  int64_t getNumElements() const { return count; }

  /// Calls visit(offset in a, offset in b, length) for each run.
  template <typename Visit>
  void forEachRun(Visit visit) const {
    if (count > 0)
      walk(loops.size(), startA, startB, visit);
  }

  /// Calls visit(offset in a, offset in b, length, count, stride in a, stride
  /// in b) for each group of `count` runs that are separated by the same
  /// strides.
  template <typename Visit>
  void forEachStrip(Visit visit) const {
    if (count == 0)
      return;
    if (loops.empty())
      return visit(startA, startB, run, int64_t(1), run, run);
    auto visitStrip = [&](int64_t a, int64_t b, int64_t) {
      visit(a, b, run, loops[0].size, loops[0].strideA, loops[0].strideB);
    };
    walk(loops.size(), startA, startB, visitStrip, /*end=*/1);
  }

  /// Copies the box from `src`, tensor a, to `dst`, tensor b.
  void copy(int64_t elementBytes, const std::byte *src, std::byte *dst) const {
    forEachRun([&](int64_t a, int64_t b, int64_t length) {
      std::memcpy(dst + b * elementBytes, src + a * elementBytes,
                  length * elementBytes);
    });
  }

private:
  struct Loop {
    int64_t size, strideA, strideB;
  };

  /// Runs the loops from the outermost to loop `end`.
  template <typename Visit>
  void walk(size_t depth, int64_t a, int64_t b, Visit &visit,
            size_t end = 0) const {
    if (depth == end)
      return visit(a, b, run);
    const Loop &loop = loops[depth - 1];
    for (int64_t i = 0; i < loop.size; ++i) {
      walk(depth - 1, a, b, visit, end);
      a += loop.strideA;
      b += loop.strideB;
    }
  }

  int64_t count;
  int64_t startA = 0, startB = 0;
  int64_t run = 1;
  std::vector<Loop> loops; // innermost first
};

inline StridedCopy::StridedCopy(const Shape &size, Place a, Place b)
    : count(numElements(size)) {
  if (count == 0)
    return; // strides may overflow
  int64_t strideA = 1, strideB = 1;
  for (size_t d = size.size(); d-- > 0;) {
    startA += a.offset[d] * strideA;
    startB += b.offset[d] * strideB;
    // Merge dimensions that are contiguous with each other in both tensors.
    if (loops.empty() && strideA == run && strideB == run)
      run *= size[d];
    else if (!loops.empty() &&
             strideA == loops.back().strideA * loops.back().size &&
             strideB == loops.back().strideB * loops.back().size)
      loops.back().size *= size[d];
    else if (size[d] > 1)
      loops.push_back({size[d], strideA, strideB});
    strideA *= a.shape[d];
    strideB *= b.shape[d];
  }
}

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_STRIDEDCOPY_H
