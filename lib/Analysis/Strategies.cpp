//===- Strategies.cpp - The ways in which an op may run -------------------===//

#include "tp/Analysis/Strategies.h"
#include "tp/Analysis/SplitInference.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>
#include <set>

using namespace mlir;
using namespace mlir::tp;

bool Strategy::extends(const Strategy &other) const {
  for (auto [mine, theirs] :
       llvm::zip(split.factorAxes, other.split.factorAxes))
    if (!llvm::equal(theirs, ArrayRef(mine).take_front(theirs.size())))
      return false;
  return llvm::all_of(other.split.linearAxes, [&](const auto &entry) {
    return llvm::is_contained(split.linearAxes, entry);
  });
}

void tp::collectParts(const ShardingRule &rule, ArrayRef<unsigned> dim,
                      MeshOp mesh, AxisRefAttr axis,
                      SmallVectorImpl<AxisRefAttr> &parts) {
  if (dim.size() < 2)
    return;
  int64_t size = mesh.getAxisSize(axis);
  int64_t common = std::gcd(rule.factors[dim.front()].size, size);
  if (common == 1 || common == size)
    return;
  MLIRContext *context = mesh.getContext();
  parts.push_back(AxisRefAttr::get(context, axis.getName(), 1, common));
  parts.push_back(
      AxisRefAttr::get(context, axis.getName(), common, size / common));
}

namespace {
class Enumerator {
public:
  Enumerator(const ShardingRule &rule, MeshOp mesh,
             ArrayRef<SplitChoice> choices, int64_t width, bool anyOrder)
      : rule(rule), mesh(mesh), width(width), anyOrder(anyOrder) {
    for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
      auto &own = byAxis.emplace_back();
      for (const SplitChoice &choice : choices)
        if (choice.axis.getName() == mesh.getAxisName(i))
          own.push_back(&choice);
      // Major parts first.
      llvm::stable_sort(own, [](const auto *a, const auto *b) {
        return a->axis.getPreSize() < b->axis.getPreSize();
      });
    }
  }

  std::vector<Strategy> run() {
    enumerate(0, 0, getReplicatedSplit(rule, mesh));
    return std::move(strategies);
  }

private:
  /// Adds to `split` what mesh dimension `axis` does: one of its choices from
  /// `first` on, or several on parts of it.
  void enumerate(size_t axis, size_t first, const OpSplit &split);
  std::optional<OpSplit> apply(const SplitChoice &choice, OpSplit split);
  void add(const OpSplit &split);
  CommunicationCost getOwnCost(const OpSplit &split);

  const ShardingRule &rule;
  MeshOp mesh;
  int64_t width;
  bool anyOrder;
  SmallVector<SmallVector<const SplitChoice *>> byAxis;
  std::vector<Strategy> strategies;
  std::set<SmallVector<const void *, 8>> seen;
};
} // namespace

void Enumerator::enumerate(size_t axis, size_t first, const OpSplit &split) {
  if (axis == byAxis.size())
    return add(split);
  // Of equal cost, the first wins: what leaves the mesh dimension unused is
  // last.
  ArrayRef<const SplitChoice *> own = byAxis[axis];
  for (size_t i = first; i < own.size(); ++i) {
    auto next = apply(*own[i], split);
    if (!next)
      continue;
    if (own[i]->axis.isWhole()) {
      enumerate(axis + 1, 0, *next);
      continue;
    }
    // Further parts of the same mesh dimension; those that overlap don't apply.
    enumerate(axis, i + 1, *next);
  }
  enumerate(axis + 1, 0, split);
}

std::optional<OpSplit> Enumerator::apply(const SplitChoice &choice,
                                         OpSplit split) {
  for (AxisRefAttr used : split.usedAxes())
    if (used.overlaps(choice.axis))
      return std::nullopt;
  if (choice.isLinear) {
    split.linearAxes.push_back({choice.index, choice.axis});
    return split;
  }
  auto &axes = split.factorAxes[choice.index];
  if (axes.empty())
    split.factorSegments[choice.index].assign(choice.segments.begin(),
                                              choice.segments.end());
  else if (ArrayRef<int64_t>(split.factorSegments[choice.index]) !=
           ArrayRef<int64_t>(choice.segments))
    return std::nullopt;
  if (!canSplit(rule, split, choice.index, choice.axis))
    return std::nullopt;
  // Blocks of parts are the whole's only where sizes divide.
  if (!choice.axis.isWhole() &&
      rule.factors[choice.index].size %
          (mesh.getAxesSize(axes) * mesh.getAxisSize(choice.axis)))
    return std::nullopt;
  axes.push_back(choice.axis);
  return split;
}

void Enumerator::add(const OpSplit &given) {
  // All orders of the axes of the first factor that has several; further ones
  // nest as the mesh has them.
  SmallVector<OpSplit> orders = {given};
  if (anyOrder)
    for (auto [factor, axes] : llvm::enumerate(given.factorAxes)) {
      if (axes.size() < 2)
        continue;
      SmallVector<unsigned> order =
          llvm::to_vector(llvm::seq<unsigned>(0, axes.size()));
      while (std::next_permutation(order.begin(), order.end())) {
        OpSplit other = given;
        for (auto [place, from] : llvm::enumerate(order))
          other.factorAxes[factor][place] = axes[from];
        orders.push_back(std::move(other));
      }
      break;
    }
  for (OpSplit &split : orders) {
    Strategy strategy;
    SmallVector<const void *, 8> key;
    for (size_t i = 0; i < rule.operands.size(); ++i) {
      strategy.operands.push_back(getOperandSharding(rule, split, i));
      key.push_back(strategy.operands.back().getAsOpaquePointer());
    }
    for (size_t i = 0; i < rule.results.size(); ++i) {
      strategy.results.push_back(getResultSharding(rule, split, i));
      key.push_back(strategy.results.back().getAsOpaquePointer());
    }
    if (llvm::is_contained(key, nullptr) || !seen.insert(key).second)
      continue;
    strategy.cost = getOwnCost(split);
    strategy.split = std::move(split);
    strategies.push_back(std::move(strategy));
  }
}

/// Elements that a rank computes, and what the partition hook reduces along
/// collective factors: as many elements as the first operand has, without the
/// factor.
CommunicationCost Enumerator::getOwnCost(const OpSplit &split) {
  CommunicationCost cost;
  auto getLocalSize = [&](unsigned factor) {
    return llvm::divideCeil(rule.factors[factor].size,
                            mesh.getAxesSize(split.factorAxes[factor]));
  };
  cost.work = 1;
  for (unsigned factor = 0; factor < rule.factors.size(); ++factor)
    cost.work *= getLocalSize(factor);
  for (auto [set, axis] : split.linearAxes)
    if (set >= rule.linearSets.size() - rule.numOnce)
      cost.work *= 2;
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    int64_t ranks = mesh.getAxesSize(split.factorAxes[index]);
    if (factor.kind != FactorKind::Collective || ranks == 1)
      continue;
    int64_t elements = 1;
    for (const DimFactors &dim : rule.operands.front())
      for (unsigned other : dim)
        if (other != index)
          elements *= getLocalSize(other);
    cost.collectives += factor.reductions;
    cost.bytes += 2 * (ranks - 1) * elements * width * factor.reductions *
                  (mesh.getNumRanks() / ranks);
  }
  return cost;
}

std::vector<Strategy> tp::enumerateStrategies(const ShardingRule &rule,
                                              MeshOp mesh,
                                              ArrayRef<SplitChoice> choices,
                                              int64_t width, bool anyOrder) {
  return Enumerator(rule, mesh, choices, width, anyOrder).run();
}
