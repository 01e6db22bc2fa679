//===- Tensor.h - A dense tensor in host memory -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_TENSOR_H
#define TPRT_TENSOR_H

#include "tprt/Dtype.h"

#include <memory>
#include <string>
#include <vector>

namespace tprt {

using Shape = std::vector<int64_t>;

/// Every shard, arena and owned tensor starts at a multiple of this.
inline constexpr size_t blockAlignment = 64;

/// Product of the dimensions; nullopt when one is negative or the product
/// (times 8 bytes) exceeds int64_t.
TPRT_API std::optional<int64_t> checkedNumElements(const Shape &shape);

/// Product of the dimensions of a shape that has been checked.
TPRT_API int64_t numElements(const Shape &shape);

/// "2x64xf32", or "f32" for a scalar.
TPRT_API std::string typeString(Dtype dtype, const Shape &shape);

/// Uninitialized memory of `bytes` bytes, aligned to blockAlignment. Throws an
/// execution error when memory runs out.
TPRT_API std::shared_ptr<std::byte> allocateAligned(int64_t bytes);

/// A dense, row-major, read-only tensor. `data` keeps alive whatever holds the
/// elements: a mapped file or a buffer.
struct Tensor {
  Dtype dtype = Dtype::F32;
  Shape shape;
  std::shared_ptr<const std::byte> data;

  int64_t getNumElements() const { return numElements(shape); }
  int64_t getNumBytes() const { return getNumElements() * byteWidth(dtype); }
  std::string getTypeString() const { return typeString(dtype, shape); }
};

/// `tensor` with elements of `dtype`, both of them float types: rounded to
/// nearest, ties to even, if `dtype` is narrower. A tensor that has this dtype
/// is returned as it is.
TPRT_API Tensor convertFloats(Tensor tensor, Dtype dtype);

/// Consecutive indices along one dimension.
struct Piece {
  int64_t offset;
  int64_t size;

  auto operator<=>(const Piece &) const = default;
};

/// A rank's part of a tensor: along each dimension, the pieces that it consists
/// of, ascending and not empty. Usually there is one piece. There are several
/// if the segments of a fused weight are sharded separately, and none if the
/// rank has no elements.
struct Block {
  std::vector<std::vector<Piece>> dims;

  /// The shape of the dense tensor that a rank holds.
  TPRT_API Shape getShape() const;
  auto operator<=>(const Block &) const = default;
};

/// The block of shape `size` at `offset`.
TPRT_API Block makeBox(const Shape &offset, const Shape &size);

/// The number of elements in at least one of `blocks`, which all have the same
/// number of dimensions.
TPRT_API int64_t countCovered(const std::vector<Block> &blocks);

/// Where the block starts, in elements, when it is one contiguous run of a
/// tensor of `shape`; else nullopt.
TPRT_API std::optional<int64_t> contiguousOffset(const Shape &shape,
                                                 const Block &block);

/// Copies `block` of the row-major tensor at `src` (of `shape`) to the dense
/// buffer `dst`.
TPRT_API void readBlock(const Shape &shape, const Block &block,
                        int64_t elementBytes, const std::byte *src,
                        std::byte *dst);
/// The converse: copies the dense buffer `src` to `block` of the tensor at
/// `dst`.
TPRT_API void writeBlock(const Shape &shape, const Block &block,
                         int64_t elementBytes, const std::byte *src,
                         std::byte *dst);

} // namespace tprt

#endif // TPRT_TENSOR_H
