//===- Blocks.cpp - Blocks of tensors that ranks hold ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Intervals.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;

Interval tp::getChunk(Interval whole, int64_t numChunks, int64_t index) {
  int64_t chunk = llvm::divideCeil(whole.size, numChunks);
  int64_t begin = std::min(index * chunk, whole.size);
  int64_t end = std::min(begin + chunk, whole.size);
  return {whole.offset + begin, end - begin};
}

SmallVector<Interval, 1> tp::getDimBlock(int64_t size, AxisListAttr axes,
                                         MeshOp mesh, int64_t rank) {
  SmallVector<Interval, 1> block;
  int64_t offset = 0;
  for (int64_t segment : axes.getSegments()) {
    block.push_back({offset, segment});
    offset += segment;
  }
  if (block.empty())
    block.push_back({0, size});
  for (AxisRefAttr axis : axes) {
    int64_t index = mesh.getIndexAlong(rank, axis);
    for (Interval &interval : block)
      interval = getChunk(interval, mesh.getAxisSize(axis), index);
  }
  return block;
}

TensorBlock tp::getBlock(ArrayRef<int64_t> shape, ShardingAttr sharding,
                         MeshOp mesh, int64_t rank) {
  TensorBlock block;
  for (auto [size, axes] : llvm::zip_equal(shape, sharding.getDims()))
    block.push_back(getDimBlock(size, axes, mesh, rank));
  return block;
}

SmallVector<int64_t> tp::getBlockShape(const TensorBlock &block) {
  return llvm::map_to_vector(
      block, [](const auto &intervals) { return getSize(intervals); });
}

int64_t tp::getNumElements(const TensorBlock &block) {
  return llvm::product_of(getBlockShape(block));
}

RankedTensorType tp::getLocalType(RankedTensorType global,
                                  ShardingAttr sharding, MeshOp mesh,
                                  int64_t rank) {
  return global.clone(
      getBlockShape(getBlock(global.getShape(), sharding, mesh, rank)));
}

bool tp::isEven(ArrayRef<int64_t> shape, ShardingAttr sharding, MeshOp mesh) {
  for (auto [size, axes] : llvm::zip_equal(shape, sharding.getDims())) {
    int64_t ranks = mesh.getAxesSize(axes.getAxes());
    if (axes.getSegments().empty()) {
      if (size % ranks)
        return false;
      continue;
    }
    for (int64_t segment : axes.getSegments())
      if (segment % ranks)
        return false;
  }
  return true;
}

SmallVector<AxisRefAttr> tp::getSplittingAxes(ShardingAttr sharding) {
  SmallVector<AxisRefAttr> axes;
  for (AxisListAttr list : sharding.getDims())
    llvm::append_range(axes, list);
  return axes;
}

namespace {
/// An interval that two blocks share, with its offset in each.
struct Shared {
  int64_t sourceOffset, offset, size;
};
} // namespace

static SmallVector<Shared, 1> intersect(ArrayRef<Interval> source,
                                        ArrayRef<Interval> target) {
  SmallVector<Shared, 1> shared;
  int64_t sourceBegin = 0;
  for (Interval s : source) {
    int64_t targetBegin = 0;
    for (Interval t : target) {
      int64_t begin = std::max(s.offset, t.offset);
      int64_t end = std::min(s.offset + s.size, t.offset + t.size);
      if (begin < end)
        shared.push_back({sourceBegin + begin - s.offset,
                          targetBegin + begin - t.offset, end - begin});
      targetBegin += t.size;
    }
    sourceBegin += s.size;
  }
  return shared;
}

int64_t tp::getNumShared(const TensorBlock &a, const TensorBlock &b) {
  int64_t elements = 1;
  for (auto [dimA, dimB] : llvm::zip_equal(a, b)) {
    int64_t size = 0;
    for (Shared shared : intersect(dimA, dimB))
      size += shared.size;
    elements *= size;
  }
  return elements;
}

SmallVector<Transfer> tp::getTransfers(ArrayRef<int64_t> shape,
                                       ShardingAttr from, ShardingAttr to,
                                       MeshOp mesh, int64_t rank) {
  TensorBlock target = getBlock(shape, to, mesh, rank);
  SmallVector<Transfer> transfers;
  for (int64_t source : mesh.getGroupOf(rank, getSplittingAxes(from))) {
    TensorBlock held = getBlock(shape, from, mesh, source);
    // The boxes are the products of the intervals that each dimension shares.
    SmallVector<Transfer> boxes = {Transfer{source, {}, {}, {}}};
    for (auto [heldDim, targetDim] : llvm::zip_equal(held, target)) {
      SmallVector<Transfer> next;
      for (const Transfer &box : boxes)
        for (Shared shared : intersect(heldDim, targetDim)) {
          next.push_back(box);
          next.back().sourceOffset.push_back(shared.sourceOffset);
          next.back().offset.push_back(shared.offset);
          next.back().size.push_back(shared.size);
        }
      boxes = std::move(next);
    }
    llvm::append_range(transfers, boxes);
  }
  llvm::stable_sort(transfers, [](const Transfer &a, const Transfer &b) {
    return a.source < b.source;
  });
  return transfers;
}
