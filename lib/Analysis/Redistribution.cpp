//===- Redistribution.cpp - From one placement to another -----------------===//

#include "tp/Analysis/Redistribution.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

namespace {
/// A placement that steps change: the axes of each dimension, and what is still
/// partial.
struct State {
  SmallVector<SmallVector<AxisRefAttr>> dims;
  SmallVector<PartialAttr> partial;

  State(ShardingAttr sharding, MeshOp mesh) {
    auto isReal = [&](AxisRefAttr axis) { return mesh.getAxisSize(axis) > 1; };
    for (AxisListAttr axes : sharding.getDims())
      dims.emplace_back(llvm::make_filter_range(axes, isReal));
    for (PartialAttr p : sharding.getPartial())
      if (isReal(p.getAxis()))
        partial.push_back(p);
  }

  ShardingAttr get(FlatSymbolRefAttr mesh) const {
    MLIRContext *context = mesh.getContext();
    SmallVector<AxisListAttr> lists;
    for (const auto &axes : dims)
      lists.push_back(AxisListAttr::get(context, axes));
    return ShardingAttr::get(context, mesh, lists, partial);
  }

  /// Whether `axis`, or a part of the mesh dimension that overlaps it, is in
  /// use.
  bool uses(AxisRefAttr axis) const {
    auto overlaps = [&](AxisRefAttr other) {
      if (other.getName() != axis.getName())
        return false;
      // Part (p)s covers the sizes from p to p*s.
      return axis.isWhole() || other.isWhole() ||
             (axis.getPreSize() < other.getPreSize() * other.getSize() &&
              other.getPreSize() < axis.getPreSize() * axis.getSize());
    };
    return llvm::any_of(dims, [&](const auto &axes) {
             return llvm::any_of(axes, overlaps);
           }) ||
           llvm::any_of(partial,
                        [&](PartialAttr p) { return overlaps(p.getAxis()); });
  }
};

/// The axis that dimension `dim` needs next, when all that it has is right.
std::optional<AxisRefAttr> getNextAxis(const State &current,
                                       const State &target, int64_t dim) {
  ArrayRef<AxisRefAttr> have = current.dims[dim], want = target.dims[dim];
  if (have.size() >= want.size() || want.take_front(have.size()) != have)
    return std::nullopt;
  return want[have.size()];
}

/// The trailing axes of dimension `dim` that the target doesn't have there.
ArrayRef<AxisRefAttr> getSurplus(const State &current, const State &target,
                                 int64_t dim) {
  ArrayRef<AxisRefAttr> have = current.dims[dim], want = target.dims[dim];
  size_t common = 0;
  while (common < have.size() && common < want.size() &&
         have[common] == want[common])
    ++common;
  return have.drop_front(common);
}
} // namespace

FailureOr<SmallVector<RedistributionStep>>
tp::planRedistribution(ShardingAttr from, ShardingAttr to, MeshOp mesh,
                       function_ref<InFlightDiagnostic()> emitError) {
  State current(from, mesh), target(to, mesh);
  SmallVector<RedistributionStep> steps;
  auto addStep = [&](RedistributionStep step) {
    step.result = current.get(from.getMesh());
    steps.push_back(std::move(step));
  };

  for (PartialAttr wanted : target.partial) {
    if (llvm::is_contained(current.partial, wanted))
      continue;
    emitError() << "can't redistribute from " << printPlacements(from, mesh)
                << " to " << printPlacements(to, mesh)
                << ": no value becomes Partial by a redistribution";
    return failure();
  }

  auto slice = [&]() {
    bool sliced = false;
    for (int64_t dim = 0, e = current.dims.size(); dim < e; ++dim)
      while (auto axis = getNextAxis(current, target, dim)) {
        if (current.uses(*axis))
          break;
        current.dims[dim].push_back(*axis);
        addStep({RedistributionStep::LocalSlice, {*axis}, dim});
        sliced = true;
      }
    return sliced;
  };

  // Local slices make what follows smaller.
  slice();

  // Partial sums: scatter where the target is split next, else reduce.
  SmallVector<PartialAttr> pending;
  for (PartialAttr p : current.partial)
    if (!llvm::is_contained(target.partial, p))
      pending.push_back(p);
  bool changed = true;
  while (changed) {
    changed = false;
    for (PartialAttr p : pending) {
      for (int64_t dim = 0, e = current.dims.size(); dim < e; ++dim) {
        auto next = getNextAxis(current, target, dim);
        if (!next || *next != p.getAxis())
          continue;
        llvm::erase(current.partial, p);
        current.dims[dim].push_back(p.getAxis());
        addStep({RedistributionStep::ReduceScatter, {p.getAxis()}, dim, 0,
                 p.getKind()});
        changed = true;
        break;
      }
      if (changed) {
        llvm::erase(pending, p);
        break;
      }
    }
  }
  // One reduction over all mesh dimensions that have the same kind.
  while (!pending.empty()) {
    ReductionKind kind = pending.front().getKind();
    SmallVector<AxisRefAttr> axes;
    for (PartialAttr p : pending)
      if (p.getKind() == kind) {
        axes.push_back(p.getAxis());
        llvm::erase(current.partial, p);
      }
    llvm::erase_if(pending, [&](PartialAttr p) { return p.getKind() == kind; });
    addStep({RedistributionStep::AllReduce, axes, 0, 0, kind});
  }

  while (current.dims != target.dims) {
    if (slice())
      continue;
    bool moved = false;
    // A split that the target has on another dimension, next there.
    for (int64_t i = 0, e = current.dims.size(); i < e && !moved; ++i) {
      if (getSurplus(current, target, i).empty())
        continue;
      AxisRefAttr last = current.dims[i].back();
      for (int64_t j = 0; j < e && !moved; ++j) {
        if (i == j || getNextAxis(current, target, j) != last)
          continue;
        current.dims[i].pop_back();
        current.dims[j].push_back(last);
        addStep({RedistributionStep::AllToAll, {last}, j, i});
        moved = true;
      }
    }
    for (int64_t dim = 0, e = current.dims.size(); dim < e && !moved; ++dim) {
      SmallVector<AxisRefAttr> surplus(getSurplus(current, target, dim));
      if (surplus.empty())
        continue;
      current.dims[dim].truncate(current.dims[dim].size() - surplus.size());
      addStep({RedistributionStep::AllGather, surplus, dim});
      moved = true;
    }
  }
  return steps;
}

std::optional<RedistributionCost> tp::getAxisCost(ShardingAttr from,
                                                  ShardingAttr to,
                                                  StringRef axis, int64_t n,
                                                  double numBytes) {
  auto fromDim = from.getShardedDim(axis), toDim = to.getShardedDim(axis);
  auto fromKind = from.getPartialKind(axis), toKind = to.getPartialKind(axis);
  if (toKind) {
    if (fromKind == toKind || n == 1)
      return RedistributionCost{};
    return std::nullopt;
  }
  double share = numBytes * (n - 1) / n;
  if (n == 1 || (!fromKind && (fromDim == toDim || !fromDim)))
    return RedistributionCost{};
  if (fromKind)
    return toDim ? RedistributionCost{share, 1}
                 : RedistributionCost{2 * share, 1};
  return toDim ? RedistributionCost{share / n, 1}
               : RedistributionCost{share, 1};
}
