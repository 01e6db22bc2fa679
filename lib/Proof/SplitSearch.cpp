//===- SplitSearch.cpp - Splits that placed operands allow ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SplitSearch.h"
#include "tp/Sharding/SplitInference.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::tp;

namespace {
class SplitSearch {
public:
  SplitSearch(ShardingRuleOpInterface op, MeshOp mesh, BlockAlgebra &algebra,
              ArrayRef<ShardingAttr> given, ArrayRef<AxisRefAttr> parts)
      : op(op), mesh(mesh), algebra(algebra), rule(op.getShardingRule()),
        given(given) {
    // If placements use parts of a mesh dimension, all axes are cut into parts.
    SmallVector<AxisRefAttr> cuts(parts);
    for (ShardingAttr sharding : given) {
      llvm::append_range(cuts, getSplittingAxes(sharding));
      for (PartialAttr partial : sharding.getPartial())
        cuts.push_back(partial.getAxis());
    }
    for (ShardingAttr sharding : given)
      operands.push_back(cut(sharding, cuts));
    for (ShardingAttr sharding : operands) {
      for (AxisRefAttr axis : getSplittingAxes(sharding))
        collect(axis);
      for (PartialAttr partial : sharding.getPartial())
        collect(partial.getAxis());
    }
  }

  SmallVector<OpSplit> run(const FreeSplits &freeSplits) {
    OpSplit split = getReplicatedSplit(rule, mesh);
    assign(0, split);
    placeFree(freeSplits);
    for (size_t i = 0; i < mesh.getNumAxes(); ++i)
      if (mesh.getAxisSizes()[i] == 1)
        placeSingle(AxisRefAttr::get(mesh.getContext(), mesh.getAxisName(i)));
    return std::move(found);
  }

private:
  ShardingAttr cut(ShardingAttr sharding, ArrayRef<AxisRefAttr> cuts) {
    MLIRContext *context = mesh.getContext();
    SmallVector<AxisListAttr> dims;
    for (AxisListAttr list : sharding.getDims())
      dims.push_back(AxisListAttr::get(
          context, cutParts(mesh, list.getAxes(), cuts), list.getSegments()));
    SmallVector<PartialAttr> partials;
    for (PartialAttr partial : sharding.getPartial())
      for (AxisRefAttr part : cutParts(mesh, partial.getAxis(), cuts))
        partials.push_back(PartialAttr::get(context, part, partial.getKind()));
    return ShardingAttr::get(context, sharding.getMesh(), dims, partials);
  }
  void collect(AxisRefAttr axis) {
    if (!llvm::is_contained(axes, axis))
      axes.push_back(axis);
  }

  std::optional<ReductionKind> getPartial(unsigned operand, AxisRefAttr axis) {
    for (PartialAttr partial : operands[operand].getPartial())
      if (partial.getAxis() == axis)
        return partial.getKind();
    return std::nullopt;
  }

  /// Whether `axis` splits exactly those dimensions of operands that have
  /// `factor`.
  bool agrees(AxisRefAttr axis, std::optional<unsigned> factor) {
    for (auto [sharding, tensor] : llvm::zip_equal(operands, rule.operands))
      for (auto [list, factors] : llvm::zip_equal(sharding.getDims(), tensor))
        if (llvm::is_contained(list.getAxes(), axis) !=
            (factor && llvm::is_contained(factors, *factor)))
          return false;
    return true;
  }

  /// Tries, for one axis after the other, each factor and linear set that it
  /// may belong to.
  bool assign(size_t index, OpSplit &split) {
    if (index == axes.size())
      return accept(split);
    AxisRefAttr axis = axes[index];
    bool anyPartial = false, onlySums = true;
    for (unsigned i = 0; i < operands.size(); ++i)
      if (auto kind = getPartial(i, axis)) {
        anyPartial = true;
        onlySums &= *kind == ReductionKind::Sum;
      }
    if (anyPartial) {
      for (auto [set, members] : llvm::enumerate(rule.linearSets)) {
        bool same = true;
        for (unsigned i = 0; i < operands.size(); ++i)
          same &=
              getPartial(i, axis).has_value() == llvm::is_contained(members, i);
        if (!same || !onlySums || !agrees(axis, std::nullopt))
          continue;
        split.linearAxes.push_back({static_cast<unsigned>(set), axis});
        if (assign(index + 1, split))
          return true;
        split.linearAxes.pop_back();
      }
      return false;
    }
    SmallVector<ShardingAttr> noResults(rule.results.size());
    for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
      if (!agrees(axis, factor))
        continue;
      SmallVector<int64_t> segments = split.factorSegments[factor];
      if (split.factorAxes[factor].empty())
        split.factorSegments[factor] =
            inferSegments(rule, factor, axis, operands, noResults);
      if (canSplit(rule, split, factor, axis)) {
        split.factorAxes[factor].push_back(axis);
        if (assign(index + 1, split))
          return true;
        split.factorAxes[factor].pop_back();
      }
      split.factorSegments[factor] = segments;
    }
    return false;
  }

  /// Accepts a split for which the rule requires the blocks that the ranks
  /// have. Parts of a mesh dimension are merged first. If blocks are uneven,
  /// the split by one part after the other is a different one and is tried,
  /// too.
  bool accept(const OpSplit &chosen) {
    OpSplit merged = chosen;
    for (auto &list : merged.factorAxes)
      list = mergeParts(mesh, list);
    merged.linearAxes.clear();
    for (auto [set, axis] : chosen.linearAxes) {
      if (!merged.linearAxes.empty() && merged.linearAxes.back().first == set) {
        auto parts = mergeParts(mesh, {merged.linearAxes.back().second, axis});
        if (parts.size() == 1) {
          merged.linearAxes.back().second = parts.front();
          continue;
        }
      }
      merged.linearAxes.push_back({set, axis});
    }
    for (const OpSplit &split : {merged, chosen}) {
      if (!asksForGiven(split))
        continue;
      found.push_back(split);
      return true;
    }
    return false;
  }

  bool asksForGiven(const OpSplit &split) {
    for (auto [index, sharding] : llvm::enumerate(given)) {
      ShardingAttr wanted = getOperandSharding(rule, split, index);
      auto type = dyn_cast<RankedTensorType>(op->getOperand(index).getType());
      if (!wanted || (type && !algebra.isSame(type, wanted, sharding)))
        return false;
    }
    return true;
  }

  /// Splits factors that only results have by axes that are still unused.
  void placeFree(const FreeSplits &freeSplits) {
    llvm::SmallBitVector free(rule.factors.size(), true);
    for (const TensorFactors &tensor : rule.operands)
      for (const DimFactors &dim : tensor)
        for (unsigned factor : dim)
          free.reset(factor);
    for (unsigned factor = 0; factor < rule.factors.size(); ++factor)
      if (rule.factors[factor].kind != FactorKind::Parallel)
        free.reset(factor);
    if (free.none())
      return;
    for (unsigned factor : free.set_bits())
      segments.push_back(getSegments(rule.factors[factor].size, freeSplits));
    for (OpSplit &start : std::exchange(found, {})) {
      SmallVector<AxisRefAttr> unused;
      for (AxisRefAttr axis : freeSplits.axes)
        if (mesh.getAxisSize(axis) > 1 && !isUsed(start, axis))
          unused.push_back(axis);
      place(free, unused, start);
    }
  }
  static SmallVector<SmallVector<int64_t>>
  getSegments(int64_t size, const FreeSplits &freeSplits) {
    SmallVector<SmallVector<int64_t>> segments;
    for (ArrayRef<int64_t> list : freeSplits.segments)
      if (llvm::sum_of(list, int64_t(0)) == size)
        segments.emplace_back(list);
    if (freeSplits.inEqualSegments)
      for (int64_t count = 2; count < size; ++count)
        if (size % count == 0)
          segments.emplace_back(count, size / count);
    return segments;
  }
  static bool isUsed(const OpSplit &split, AxisRefAttr axis) {
    return llvm::any_of(split.usedAxes(), [&](AxisRefAttr other) {
      return axis.overlaps(other);
    });
  }

  /// Adds splits by a mesh dimension of one rank. It splits nothing and doesn't
  /// show in placements, but a hook may build another form for it.
  void placeSingle(AxisRefAttr axis) {
    for (size_t i = 0, e = found.size(); i < e; ++i) {
      if (isUsed(found[i], axis))
        continue;
      for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
        if (rule.factors[factor].kind == FactorKind::Whole)
          continue;
        found.push_back(found[i]);
        found.back().factorAxes[factor].push_back(axis);
      }
      for (unsigned set = 0; set < rule.linearSets.size(); ++set) {
        found.push_back(found[i]);
        found.back().linearAxes.push_back({set, axis});
      }
    }
  }

  void place(const llvm::SmallBitVector &free, ArrayRef<AxisRefAttr> unused,
             OpSplit split) {
    if (unused.empty()) {
      for (unsigned result = 0; result < rule.results.size(); ++result)
        if (!getResultSharding(rule, split, result))
          return;
      found.push_back(std::move(split));
      return;
    }
    place(free, unused.drop_front(), split);
    if (isUsed(split, unused.front()))
      return;
    for (auto [index, factor] : llvm::enumerate(free.set_bits())) {
      if (!canSplit(rule, split, factor, unused.front()))
        continue;
      if (split.factorAxes[factor].empty())
        for (const auto &list : segments[index]) {
          OpSplit next = split;
          next.factorSegments[factor] = list;
          next.factorAxes[factor].push_back(unused.front());
          place(free, unused.drop_front(), std::move(next));
        }
      // Insert the axis at any position among those that already split it.
      for (size_t i = 0, e = split.factorAxes[factor].size(); i <= e; ++i) {
        OpSplit next = split;
        auto &list = next.factorAxes[factor];
        list.insert(list.begin() + i, unused.front());
        place(free, unused.drop_front(), std::move(next));
      }
    }
  }

  ShardingRuleOpInterface op;
  MeshOp mesh;
  BlockAlgebra &algebra;
  ShardingRule rule;
  ArrayRef<ShardingAttr> given;
  SmallVector<ShardingAttr> operands;
  SmallVector<AxisRefAttr> axes;
  /// The segments that each free factor may be split in, in the order of the
  /// factors.
  SmallVector<SmallVector<SmallVector<int64_t>>> segments;
  SmallVector<OpSplit> found;
};
} // namespace

SmallVector<OpSplit> tp::findSplits(ShardingRuleOpInterface op, MeshOp mesh,
                                    BlockAlgebra &algebra,
                                    ArrayRef<ShardingAttr> operands,
                                    const FreeSplits &free,
                                    std::string &reason) {
  SmallVector<OpSplit> splits =
      SplitSearch(op, mesh, algebra, operands, {}).run(free);
  // A mesh dimension may split several factors of one dimension, each by a
  // part.
  bool isProduct = llvm::any_of(
      op.getShardingRule().operands, [](const TensorFactors &tensor) {
        return llvm::any_of(
            tensor, [](const DimFactors &dim) { return dim.size() > 1; });
      });
  if (splits.empty() && isProduct) {
    SmallVector<AxisRefAttr> used;
    for (ShardingAttr sharding : operands)
      for (AxisRefAttr axis : getSplittingAxes(sharding))
        if (!llvm::is_contained(used, axis))
          used.push_back(axis);
    for (ArrayRef<AxisRefAttr> parts : getPrimeParts(mesh, used)) {
      splits = SplitSearch(op, mesh, algebra, operands, parts).run(free);
      if (!splits.empty())
        break;
    }
  }
  if (splits.empty()) {
    std::string text;
    llvm::raw_string_ostream os(text);
    ShardingRule rule = op.getShardingRule();
    rule.print(os);
    reason = "the operands are ";
    for (auto [index, sharding] : llvm::enumerate(operands))
      reason += (index ? ", " : "") + printPlacements(sharding, mesh);
    reason += ", which its rule " + text + " doesn't allow";
  }
  return splits;
}
