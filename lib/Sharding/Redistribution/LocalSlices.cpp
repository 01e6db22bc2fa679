//===- LocalSlices.cpp - Slices instead of communication ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If a dimension is split further, with or without segments, each rank cuts its
// block along the added mesh dimensions:
//
//   {} to {x | 8, 4}        the slice over {x | 8, 4}
//   {x | 8, 4} to {x, y | 8, 4}, x = 2
//                           the slice over {y | 4, 2}, of what a rank has
//   {x | 4, 4} to {y, x}, x = y = 2
//                           the slice over {y}: ranks have half of each half
//
// Comparing blocks shows which of these forms is right, if any.
//
//===----------------------------------------------------------------------===//

#include "PlanRedistribution.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Dialect/TP/Intervals.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

static SmallVector<int64_t> getSizes(ArrayRef<Interval> intervals) {
  return llvm::map_to_vector(intervals, [](Interval i) { return i.size; });
}

namespace {

/// One dimension, which `have` splits before the slice and `want` after it.
class Dimension {
public:
  Dimension(MeshOp mesh, int64_t size, AxisListAttr have, AxisListAttr want)
      : mesh(mesh), size(size), have(have), want(want) {
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      held.push_back(getDimBlock(size, have, mesh, rank));
      wanted.push_back(getDimBlock(size, want, mesh, rank));
    }
  }

  bool isSame() const {
    return llvm::all_of(llvm::zip_equal(held, wanted), [](auto pair) {
      auto [a, b] = pair;
      return isEqual(mergeNeighbors(a), mergeNeighbors(b));
    });
  }

  /// The axes and segments by which all ranks cut their blocks; nullopt if
  /// there are none.
  std::optional<AxisListAttr> find() {
    SmallVector<AxisRefAttr> added = getAdded();
    if (added.empty())
      return std::nullopt;
    SmallVector<SmallVector<int64_t>> candidates = {{}};
    for (AxisListAttr list : {want, have})
      if (std::optional<SmallVector<int64_t>> segments = getSegments(list))
        candidates.push_back(*segments);
    for (ArrayRef<int64_t> segments : candidates) {
      auto list = AxisListAttr::get(mesh.getContext(), added, segments);
      if (isRight(list))
        return list;
    }
    return std::nullopt;
  }

private:
  /// The axes that split the dimension after the slice but not before.
  SmallVector<AxisRefAttr> getAdded() {
    SmallVector<AxisRefAttr> before =
                                 cutParts(mesh, have.getAxes(), want.getAxes()),
                             added;
    llvm::copy_if(cutParts(mesh, want.getAxes(), have.getAxes()),
                  std::back_inserter(added), [&](AxisRefAttr axis) {
                    return !llvm::is_contained(before, axis);
                  });
    return added;
  }

  /// The sizes of the pieces into which the segments of `list` divide a block;
  /// nullopt if there is only one piece, or if ranks differ.
  std::optional<SmallVector<int64_t>> getSegments(AxisListAttr list) {
    if (list.getSegments().empty())
      return std::nullopt;
    auto segmented = AxisListAttr::get(mesh.getContext(), have.getAxes(),
                                       list.getSegments());
    std::optional<SmallVector<int64_t>> common;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      SmallVector<int64_t> sizes =
          getSizes(getDimBlock(size, segmented, mesh, rank));
      llvm::erase(sizes, 0);
      if (common && *common != sizes)
        return std::nullopt;
      common = sizes;
    }
    if (common->size() < 2 || llvm::sum_of(*common) != getHeldSize(0))
      return std::nullopt;
    return common;
  }

  int64_t getHeldSize(int64_t rank) const { return getSize(held[rank]); }

  bool isRight(AxisListAttr list) {
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      if (!list.getSegments().empty() && getHeldSize(rank) != getHeldSize(0))
        return false;
      Intervals taken = getDimBlock(getHeldSize(rank), list, mesh, rank);
      if (!isEqual(select(held[rank], taken), mergeNeighbors(wanted[rank])))
        return false;
      // Ranks whose blocks have pieces of equal sizes share a program.
      if (taken.size() > 1 && getSizes(taken) != getSizes(wanted[rank]))
        return false;
    }
    return true;
  }

  MeshOp mesh;
  int64_t size;
  AxisListAttr have, want;
  /// Indexed by rank.
  std::vector<Intervals> held, wanted;
};

} // namespace

std::optional<SmallVector<RedistributionStep>>
redistribution::findLocalSlices(MeshOp mesh, ArrayRef<int64_t> shape,
                                ShardingAttr from, ShardingAttr to) {
  SmallVector<AxisListAttr> dims(from.getDims());
  SmallVector<RedistributionStep> steps;
  auto getSharding = [&]() {
    return ShardingAttr::get(from.getContext(), from.getMesh(), dims,
                             to.getPartial());
  };
  for (auto [dim, size] : llvm::enumerate(shape)) {
    AxisListAttr have = dims[dim], want = to.getDims()[dim];
    if (have == want)
      continue;
    ShardingAttr before = getSharding();
    dims[dim] = want;
    Dimension dimension(mesh, size, have, want);
    if (dimension.isSame())
      continue;
    std::optional<AxisListAttr> slice = dimension.find();
    if (!slice)
      return std::nullopt;
    RedistributionStep step{RedistributionStep::LocalSlice,
                            SmallVector<AxisRefAttr>(slice->getAxes()),
                            static_cast<int64_t>(dim)};
    step.segments.assign(slice->getSegments().begin(),
                         slice->getSegments().end());
    step.operand = before;
    step.result = getSharding();
    steps.push_back(std::move(step));
  }
  if (!steps.empty())
    steps.back().result = to;
  return steps;
}
