//===- Blocks.h - Blocks of tensors that ranks hold -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sharding gives every rank a block of the tensor: for each dimension, one
// interval, or one per segment. The sizes follow torch.chunk: an axis of size k
// cuts n elements into blocks of ceil(n/k), the last ones shorter or empty;
// further axes cut each block in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_BLOCKS_H
#define TP_DIALECT_TP_BLOCKS_H

#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// `size` elements of one dimension, from `offset` on.
struct Interval {
  int64_t offset = 0;
  int64_t size = 0;
};

/// Chunk `index` of `numChunks` of the interval.
Interval getChunk(Interval whole, int64_t numChunks, int64_t index);

/// The intervals, in order, that make up `rank`'s block of a dimension of
/// `size` elements: one, or as many as `axes` has segments.
SmallVector<Interval, 1> getDimBlock(int64_t size, AxisListAttr axes,
                                     MeshOp mesh, int64_t rank);

/// One list of intervals per dimension.
using TensorBlock = SmallVector<SmallVector<Interval, 1>, 4>;

/// `rank`'s block of a tensor of `shape` that `sharding` places.
TensorBlock getBlock(ArrayRef<int64_t> shape, ShardingAttr sharding,
                     MeshOp mesh, int64_t rank);
SmallVector<int64_t> getBlockShape(const TensorBlock &block);
int64_t getNumElements(const TensorBlock &block);
/// The number of elements that are in both blocks of one tensor.
int64_t getNumShared(const TensorBlock &a, const TensorBlock &b);

/// The type of `rank`'s block of a tensor of type `global`.
RankedTensorType getLocalType(RankedTensorType global, ShardingAttr sharding,
                              MeshOp mesh, int64_t rank);

/// Whether all ranks' blocks have the same shape.
bool isEven(ArrayRef<int64_t> shape, ShardingAttr sharding, MeshOp mesh);

/// The axes that split any dimension of `sharding`, by dimension.
SmallVector<AxisRefAttr> getSplittingAxes(ShardingAttr sharding);

/// How `rank` assembles its block of `to` from blocks of `from`. It copies the
/// elements that it has from itself, and all others from the rank that differs
/// from it only along the axes of `from`. Boxes are disjoint, ordered by
/// source.
SmallVector<Transfer> getTransfers(ArrayRef<int64_t> shape, ShardingAttr from,
                                   ShardingAttr to, MeshOp mesh, int64_t rank);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_BLOCKS_H
