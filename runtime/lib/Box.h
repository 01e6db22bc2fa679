//===- Box.h - Boxes of two row-major tensors, run by run --------*- C++
//-*-===//
//
// Slicing weights, gathering outputs and all data movement of collectives are
// copies (or reductions) between a box of one tensor and the box of the same
// size of another. Both are walked by contiguous runs.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_BOX_H
#define TPRT_LIB_BOX_H

#include "tprt/Tensor.h"

#include <cstring>

namespace tprt {

/// Where a box lies: the shape of the tensor around it and its first index.
struct Place {
  const Shape &shape;
  const Shape &offset;
};

/// Calls visit(offset in a, offset in b, count), in elements, for each run that
/// is contiguous in both tensors.
template <typename Visit>
void forEachRun(const Shape &size, Place a, Place b, Visit visit) {
  if (numElements(size) == 0)
    return;
  size_t rank = size.size();
  Shape strideA(rank, 1), strideB(rank, 1);
  for (size_t d = rank; d-- > 1;) {
    strideA[d - 1] = strideA[d] * a.shape[d];
    strideB[d - 1] = strideB[d] * b.shape[d];
  }
  int64_t offsetA = 0, offsetB = 0;
  for (size_t d = 0; d < rank; ++d) {
    offsetA += a.offset[d] * strideA[d];
    offsetB += b.offset[d] * strideB[d];
  }
  // A run spans the trailing dimensions that are whole in both, and one more.
  size_t outer = rank;
  int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= size[outer];
    if (size[outer] != a.shape[outer] || size[outer] != b.shape[outer])
      break;
  }
  Shape index(outer, 0);
  while (true) {
    visit(offsetA, offsetB, run);
    size_t d = outer;
    for (; d > 0; --d) {
      offsetA += strideA[d - 1];
      offsetB += strideB[d - 1];
      if (++index[d - 1] < size[d - 1])
        break;
      offsetA -= size[d - 1] * strideA[d - 1];
      offsetB -= size[d - 1] * strideB[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0)
      return;
  }
}

/// Copies the box of `size`, and returns the bytes that it holds.
inline int64_t copyBox(const Shape &size, int64_t elementBytes, Place from,
                       const std::byte *src, Place to, std::byte *dst) {
  forEachRun(size, from, to, [&](int64_t read, int64_t write, int64_t count) {
    std::memcpy(dst + write * elementBytes, src + read * elementBytes,
                count * elementBytes);
  });
  return numElements(size) * elementBytes;
}

} // namespace tprt

#endif // TPRT_LIB_BOX_H
