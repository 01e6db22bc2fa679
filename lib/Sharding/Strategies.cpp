//===- Strategies.cpp - Strategies of ops ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Strategies.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Interfaces/HaloExchange.h"
#include "tp/Sharding/SplitInference.h"
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
                      MeshOp mesh, AxisRefAttr axis, int64_t before,
                      SmallVectorImpl<AxisRefAttr> &parts) {
  if (dim.size() < 2)
    return;
  MLIRContext *context = mesh.getContext();
  int64_t pre = getPartBegin(axis);
  int64_t rest = mesh.getAxisSize(axis);
  SmallVector<AxisRefAttr> found;
  auto add = [&](int64_t size) {
    found.push_back(AxisRefAttr::get(context, axis.getName(), pre, size));
    pre *= size;
    rest /= size;
  };
  for (unsigned factor : dim) {
    int64_t size = rule.factors[factor].size;
    if (size == 0)
      return;
    if (before % size == 0) {
      before /= size;
      continue;
    }
    if (size % before != 0)
      return;
    int64_t room = size / before, common = std::gcd(room, rest);
    before = 1;
    if (common == rest || common == 1)
      break;
    add(common);
    if (common != room)
      break;
  }
  if (found.empty())
    return;
  add(rest);
  llvm::append_range(parts, found);
}

namespace {
class Enumerator {
public:
  Enumerator(const ShardingRule &rule, MeshOp mesh,
             ArrayRef<SplitChoice> choices, int64_t width, bool anyOrder,
             size_t limit)
      : rule(rule), mesh(mesh), width(width), anyOrder(anyOrder), limit(limit) {
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
    // At equal cost the first strategy wins, so the mesh's order comes first.
    if (anyOrder && strategies.size() <= limit) {
      reorders = true;
      enumerate(0, 0, getReplicatedSplit(rule, mesh));
    }
    if (strategies.size() > limit)
      strategies.clear();
    return std::move(strategies);
  }

private:
  /// Extends `split` over mesh dimension `axis` by one of its choices from
  /// `first` on, or by several on parts of it.
  void enumerate(size_t axis, size_t first, const OpSplit &split);
  std::optional<OpSplit> apply(const SplitChoice &choice, OpSplit split);
  /// Adds `split` with all orders of the axes of each factor from `factor` on.
  void addOrders(unsigned factor, const OpSplit &split);
  void add(OpSplit split);
  CommunicationCost getOwnCost(const OpSplit &split);
  void addHalos(const OpSplit &split, CommunicationCost &cost);

  const ShardingRule &rule;
  MeshOp mesh;
  int64_t width;
  bool anyOrder;
  /// Whether this pass tries all orders.
  bool reorders = false;
  size_t limit;
  SmallVector<SmallVector<const SplitChoice *>> byAxis;
  std::vector<Strategy> strategies;
  std::set<SmallVector<const void *, 8>> seen;
};
} // namespace

void Enumerator::enumerate(size_t axis, size_t first, const OpSplit &split) {
  if (strategies.size() > limit)
    return;
  if (axis == byAxis.size())
    return reorders ? addOrders(0, split) : add(split);
  // At equal cost the first strategy wins, so leaving the mesh dimension unused
  // comes last.
  ArrayRef<const SplitChoice *> own = byAxis[axis];
  for (size_t i = first; i < own.size(); ++i) {
    auto next = apply(*own[i], split);
    if (!next)
      continue;
    if (own[i]->axis.isWhole()) {
      enumerate(axis + 1, 0, *next);
      continue;
    }
    // Adds further parts of the same mesh dimension; `apply` rejects
    // overlapping ones.
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
  // Parts give the same blocks as the whole only if sizes divide.
  if (!choice.axis.isWhole() &&
      rule.factors[choice.index].size %
          (mesh.getAxesSize(axes) * mesh.getAxisSize(choice.axis)))
    return std::nullopt;
  axes.push_back(choice.axis);
  return split;
}

void Enumerator::addOrders(unsigned factor, const OpSplit &split) {
  if (strategies.size() > limit)
    return;
  if (factor == split.factorAxes.size())
    return add(split);
  ArrayRef<AxisRefAttr> axes = split.factorAxes[factor];
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, axes.size()));
  do {
    OpSplit other = split;
    for (auto [place, from] : llvm::enumerate(order))
      other.factorAxes[factor][place] = axes[from];
    addOrders(factor + 1, other);
  } while (std::next_permutation(order.begin(), order.end()));
}

void Enumerator::add(OpSplit split) {
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
    return;
  strategy.cost = getOwnCost(split);
  strategy.split = std::move(split);
  strategies.push_back(std::move(strategy));
}

/// One collective per dimension. The operand of each has what the rank received
/// along earlier dimensions. Summed over all ranks, the elements of blocks are
/// a product over the dimensions, because each is split by other axes.
void Enumerator::addHalos(const OpSplit &split, CommunicationCost &cost) {
  if (rule.halos.empty())
    return;
  SmallVector<int64_t> sums;
  int64_t ranks = mesh.getNumRanks();
  for (auto [dim, factors] : llvm::enumerate(rule.operands.front())) {
    sums.push_back(rule.getDimSize(/*isResult=*/false, 0, dim));
    for (unsigned factor : factors)
      ranks /= mesh.getAxesSize(split.factorAxes[factor]);
  }
  for (const Halo &halo : rule.halos) {
    ArrayRef<AxisRefAttr> axes = split.factorAxes[halo.factor];
    if (mesh.getAxesSize(axes) == 1)
      continue;
    HaloExchange exchange(halo, axes, mesh);
    if (exchange.isLocal)
      continue;
    int64_t received = 0, needed = 0;
    for (auto [index, interval] : llvm::enumerate(exchange.needed)) {
      received += exchange.getNumReceived(index);
      needed += interval.size;
    }
    int64_t &sum = sums[halo.operandDim];
    sum = received;
    ++cost.collectives;
    cost.bytes += llvm::product_of(sums) * ranks * width;
    sum = needed;
  }
}

/// The elements that a rank computes, and the collectives of the partition
/// hook: halos, blocks that circulate, and all-reduces along collective factors.
/// Each of these has as many elements as the first operand has without the
/// factor.
CommunicationCost Enumerator::getOwnCost(const OpSplit &split) {
  CommunicationCost cost;
  addHalos(split, cost);
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
    auto circulate = [&](const TensorFactors &tensor, int64_t steps) {
      int64_t elements = 1;
      for (const DimFactors &dim : tensor)
        for (unsigned other : dim)
          elements *= getLocalSize(other);
      cost.collectives += steps;
      cost.bytes += steps * elements * width * mesh.getNumRanks();
    };
    for (unsigned operand : factor.circulatedOperands)
      circulate(rule.operands[operand], ranks - 1);
    for (unsigned result : factor.circulatedResults)
      circulate(rule.results[result], ranks);
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
                                              int64_t width, bool anyOrder,
                                              size_t limit) {
  return Enumerator(rule, mesh, choices, width, anyOrder, limit).run();
}
