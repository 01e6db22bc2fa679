//===- ExactDifference.cpp - Differences between executed results ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExactCheck.h"
#include "tp/Dialect/TP/Blocks.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::exact;

/// Whether two unequal numbers differ by more than rounding errors; records
/// those that don't. An infinite number may become NaN when it is combined from
/// several contributions.
bool ExactCheck::isDifferent(Scalar found, Scalar expected, Type element) {
  if (!isa<FloatType>(element) || isProven ||
      session.meaning.getMode() == Interpretation::Mode::Free)
    return !(isa<FloatType>(element) && found.bits == kNaN &&
             (expected.bits == kInfinity || expected.bits == kMinusInfinity));
  if (found.bits == kNaN && !isFinite(expected))
    return false;
  if (!isFinite(found) || !isFinite(expected) ||
      !areClose(getValue(found), getValue(expected)))
    return true;
  areSomeClose = true;
  return false;
}

std::optional<Difference> ExactCheck::compare(const Datum &whole,
                                              ArrayRef<Datum> blocks,
                                              ShardingAttr sharding,
                                              Type element, int64_t *numWrong) {
  std::optional<Difference> first;
  // Reduce contributions on each rank of their group.
  SmallVector<Datum> reduced(blocks);
  for (PartialAttr partial : sharding.getPartial()) {
    SmallVector<Datum> before = reduced;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      auto parts =
          llvm::map_to_vector(mesh.getGroupOf(rank, partial.getAxis()),
                              [&](int64_t member) { return before[member]; });
      reduced[rank] = reduceParts(session, parts, partial.getKind(), element);
    }
  }
  ArrayRef<int64_t> shape = whole.tensor->shape;
  SmallVector<int64_t> strides = computeStrides(shape);
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    TensorBlock block = getBlock(shape, sharding, mesh, rank);
    SmallVector<int64_t> size = getBlockShape(block);
    if (!reduced[rank].tensor || reduced[rank].tensor->shape != size) {
      if (numWrong)
        *numWrong = std::numeric_limits<int64_t>::max();
      if (!first)
        first = Difference{rank, {}, {}, {}, {}};
      return first;
    }
    if (llvm::product_of(size) == 0)
      continue;
    // The global index of each local index, by dimension.
    SmallVector<SmallVector<int64_t>> positions;
    for (const auto &intervals : block) {
      positions.emplace_back();
      for (Interval interval : intervals)
        for (int64_t i = 0; i < interval.size; ++i)
          positions.back().push_back(interval.offset + i);
    }
    SmallVector<int64_t> index(size.size(), 0);
    size_t next = 0;
    do {
      int64_t at = 0;
      for (size_t dim = 0; dim < index.size(); ++dim)
        at += positions[dim][index[dim]] * strides[dim];
      Scalar found = reduced[rank].tensor->data[next++];
      Scalar expected = whole.tensor->data[at];
      if (found.bits == expected.bits || !isDifferent(found, expected, element))
        continue;
      if (numWrong)
        ++*numWrong;
      if (first)
        continue;
      first = Difference{
          rank, index, {}, print(found, element), print(expected, element)};
      for (size_t dim = 0; dim < index.size(); ++dim)
        first->global.push_back(positions[dim][index[dim]]);
      if (!numWrong)
        return first;
    } while (advance(index, size));
  }
  return first;
}

std::optional<Difference> ExactCheck::findDifference(Operation *op,
                                                     Operation *ofReference) {
  if (machines.empty() || op->getNumResults() != 1 ||
      ofReference->getNumResults() != 1 || programs.size() > 1)
    return std::nullopt;
  auto local = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto global = dyn_cast<RankedTensorType>(ofReference->getResult(0).getType());
  if (!local || !global || local.getRank() != global.getRank() ||
      !whole->has(ofReference->getResult(0)))
    return std::nullopt;
  auto blocks = llvm::map_to_vector(machines, [&](const auto &machine) {
    return machine->get(op->getResult(0));
  });
  // Try placements that split each dimension by at most one mesh dimension and
  // give blocks of this type.
  MLIRContext *context = mesh.getContext();
  std::optional<Difference> best;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  SmallVector<AxisListAttr> dims(global.getRank(),
                                 AxisListAttr::get(context, {}));
  auto search = [&](auto &&search, int64_t dim) -> bool {
    if (dim == global.getRank()) {
      auto sharding = ShardingAttr::get(
          context, FlatSymbolRefAttr::get(mesh.getSymNameAttr()), dims, {});
      int64_t numWrong = 0;
      auto found = compare(whole->get(ofReference->getResult(0)), blocks,
                           sharding, global.getElementType(), &numWrong);
      if (numWrong < fewest) {
        fewest = numWrong;
        best = found;
      }
      return numWrong == 0;
    }
    if (local.getDimSize(dim) == global.getDimSize(dim))
      return search(search, dim + 1);
    for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
      auto axis = AxisRefAttr::get(context, mesh.getAxisName(i));
      auto list = AxisListAttr::get(context, axis);
      if (getBlockShape({getDimBlock(global.getDimSize(dim), list, mesh, 0)})
                  .front() != local.getDimSize(dim) ||
          llvm::is_contained(ArrayRef(dims).take_front(dim), list))
        continue;
      dims[dim] = list;
      if (search(search, dim + 1))
        return true;
      dims[dim] = AxisListAttr::get(context, {});
    }
    return false;
  };
  search(search, 0);
  return best && !best->global.empty() ? best : std::nullopt;
}
