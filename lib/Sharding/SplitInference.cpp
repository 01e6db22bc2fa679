//===- SplitInference.cpp - Splits that explain placements ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/SplitInference.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Sharding/Strategies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <set>

using namespace mlir;
using namespace mlir::tp;

OpSplit tp::getReplicatedSplit(const ShardingRule &rule, MeshOp mesh) {
  OpSplit split;
  split.mesh = mesh;
  split.factorAxes.resize(rule.factors.size());
  split.factorSegments.resize(rule.factors.size());
  return split;
}

/// Whether an operand may hold positions along the factor, like the indices of
/// a lookup: the factor is contracted, and the operand doesn't have it. The op
/// counts positions from the start of a rank's block, so the block must be one
/// piece.
static bool hasPositions(const ShardingRule &rule, unsigned factor) {
  FactorKind kind = rule.factors[factor].kind;
  return (kind == FactorKind::Reduction || kind == FactorKind::Collective) &&
         llvm::any_of(rule.operands, [&](const TensorFactors &tensor) {
           return llvm::none_of(tensor, [&](const DimFactors &dim) {
             return llvm::is_contained(dim, factor);
           });
         });
}

bool tp::canSplit(const ShardingRule &rule, const OpSplit &split,
                  unsigned factor, AxisRefAttr axis) {
  if (rule.factors[factor].kind == FactorKind::Whole)
    return false;
  MeshOp mesh = split.mesh;
  int64_t ranks =
      mesh.getAxesSize(split.factorAxes[factor]) * mesh.getAxisSize(axis);
  // Segments must divide evenly, each on its own.
  ArrayRef<int64_t> segments = split.factorSegments[factor];
  if (!segments.empty() && hasPositions(rule, factor))
    return false;
  if (rule.getHalo(factor))
    return segments.empty();
  if (!rule.factors[factor].circulatedOperands.empty())
    return segments.empty() && rule.factors[factor].size % ranks == 0;
  if (segments.empty() ? rule.factors[factor].size % ranks == 0
                       : llvm::all_of(segments, [&](int64_t segment) {
                           return segment % ranks == 0;
                         }))
    return true;
  // Uneven blocks of one factor aren't the blocks of a product.
  auto standsAlone = [&](const DimFactors &dim) {
    return !llvm::is_contained(dim, factor) ||
           llvm::all_of(dim, [&](unsigned other) {
             return other == factor || rule.factors[other].size == 1;
           });
  };
  return llvm::all_of(
      llvm::concat<const TensorFactors>(rule.operands, rule.results),
      [&](const TensorFactors &tensor) {
        return llvm::all_of(tensor, standsAlone);
      });
}

SmallVector<int64_t> tp::inferSegments(const ShardingRule &rule,
                                       unsigned factor, AxisRefAttr axis,
                                       ArrayRef<ShardingAttr> operands,
                                       ArrayRef<ShardingAttr> results) {
  SmallVector<std::pair<const Window *, SmallVector<int64_t>>> windows;
  SmallVector<int64_t> segments;
  bool isDone = false;
  auto visit = [&](ArrayRef<ShardingAttr> shardings,
                   ArrayRef<TensorFactors> tensors, bool isResult) {
    for (auto [index, sharding] : llvm::enumerate(shardings)) {
      if (isDone || !sharding)
        continue;
      for (auto [dim, factors] : llvm::enumerate(tensors[index])) {
        AxisListAttr axes = sharding.getDims()[dim];
        const Window *window = rule.getWindow(isResult, index, dim);
        bool has = llvm::is_contained(axes.getAxes(), axis);
        if (factors.empty() || factors.front() != factor)
          continue;
        if (window) {
          // An empty window has no segment.
          if (window->size == 0)
            continue;
          windows.push_back(
              {window, has && !axes.getSegments().empty()
                           ? SmallVector<int64_t>(axes.getSegments())
                           : SmallVector<int64_t>{window->size}});
          continue;
        }
        if (!has || isDone)
          continue;
        int64_t minor = 1;
        for (unsigned other : ArrayRef(factors).drop_front())
          minor *= rule.factors[other].size;
        for (int64_t segment : axes.getSegments())
          segments.push_back(segment / minor);
        // The segments may come from a split minor factor instead.
        if (llvm::sum_of(segments) != rule.factors[factor].size ||
            llvm::any_of(axes.getSegments(),
                         [&](int64_t segment) { return segment % minor; }))
          segments.clear();
        isDone = true;
      }
    }
  };
  visit(operands, rule.operands, /*isResult=*/false);
  visit(results, rule.results, /*isResult=*/true);
  if (isDone)
    return segments;
  // Joins windows that lie side by side, like the operands of a concatenation.
  llvm::stable_sort(windows, [](const auto &a, const auto &b) {
    return a.first->start < b.first->start;
  });
  int64_t covered = 0;
  for (auto &[window, parts] : windows)
    if (window->start == covered) {
      llvm::append_range(segments, parts);
      covered += window->size;
    }
  if (covered != rule.factors[factor].size || segments.size() == 1)
    segments.clear();
  return segments;
}

/// Whether `part` is `axis` or part of it.
static bool contains(AxisRefAttr axis, AxisRefAttr part) {
  if (axis.getName() != part.getName() || axis.isWhole())
    return axis.getName() == part.getName();
  if (part.isWhole())
    return false;
  // Their bounds must nest: for 6 ranks, x:(3)2 isn't a part of x:(2)3.
  int64_t end = axis.getPreSize() * axis.getSize();
  int64_t partEnd = part.getPreSize() * part.getSize();
  return part.getPreSize() % axis.getPreSize() == 0 && end % partEnd == 0;
}

static bool holds(AxisListAttr list, AxisRefAttr part) {
  return llvm::any_of(list,
                      [&](AxisRefAttr axis) { return contains(axis, part); });
}

/// All axes that operands and results mention, each once. An axis follows the
/// axes that are major to it on the same dimension.
static SmallVector<AxisRefAttr> collectAxes(ArrayRef<ShardingAttr> operands,
                                            ArrayRef<ShardingAttr> results) {
  SmallVector<AxisRefAttr> axes;
  auto add = [&](AxisRefAttr axis) {
    if (!llvm::is_contained(axes, axis))
      axes.push_back(axis);
  };
  for (ShardingAttr sharding :
       llvm::concat<const ShardingAttr>(operands, results)) {
    if (!sharding)
      continue;
    for (AxisListAttr list : sharding.getDims())
      llvm::for_each(list, add);
    for (PartialAttr partial : sharding.getPartial())
      add(partial.getAxis());
  }
  return axes;
}

/// Cuts the axes where one of them ends within another, and where the factors
/// of a product can only be split by parts.
static SmallVector<AxisRefAttr> cutAxes(const ShardingRule &rule, MeshOp mesh,
                                        ArrayRef<AxisRefAttr> axes,
                                        ArrayRef<ShardingAttr> operands,
                                        ArrayRef<ShardingAttr> results) {
  // The cuts, each as the size of the part that is major to it, by mesh
  // dimension.
  llvm::StringMap<std::set<int64_t>> cuts;
  for (AxisRefAttr axis : axes)
    if (!axis.isWhole())
      cuts[axis.getName()].insert(
          {axis.getPreSize(), axis.getPreSize() * axis.getSize()});
  auto cutProducts = [&](ArrayRef<ShardingAttr> shardings,
                         ArrayRef<TensorFactors> tensors) {
    for (auto [sharding, tensor] : llvm::zip(shardings, tensors)) {
      if (!sharding)
        continue;
      for (auto [list, dim] : llvm::zip(sharding.getDims(), tensor))
        for (auto [place, axis] : llvm::enumerate(list)) {
          SmallVector<AxisRefAttr> parts;
          collectParts(rule, dim, mesh, axis,
                       mesh.getAxesSize(list.getAxes().take_front(place)),
                       parts);
          for (AxisRefAttr part : parts)
            cuts[axis.getName()].insert(part.getPreSize());
        }
    }
  };
  cutProducts(operands, rule.operands);
  cutProducts(results, rule.results);
  SmallVector<AxisRefAttr> all;
  auto add = [&](AxisRefAttr axis) {
    if (!llvm::is_contained(all, axis))
      all.push_back(axis);
  };
  for (AxisRefAttr axis : axes) {
    PartBounds bounds(getPartBegin(axis), getPartEnd(mesh, axis));
    for (int64_t cut : cuts[axis.getName()])
      bounds.add(cut);
    if (bounds.get().size() <= 2) {
      add(axis);
      continue;
    }
    for (auto [begin, end] : llvm::zip(bounds.get(), bounds.get().drop_front()))
      add(getPart(mesh, axis.getName(), begin, end));
  }
  return all;
}

/// Whether `sharding` is null, or holds `axis` exactly on the dimensions that
/// have `factor`.
static bool agrees(ShardingAttr sharding, AxisRefAttr axis,
                   const TensorFactors &tensor,
                   std::optional<unsigned> factor) {
  if (!sharding)
    return true;
  for (auto [dim, axes] : llvm::enumerate(sharding.getDims())) {
    bool expected = factor && llvm::is_contained(tensor[dim], *factor);
    if (holds(axes, axis) != expected)
      return false;
  }
  return true;
}

static bool isPartial(ShardingAttr sharding, AxisRefAttr axis) {
  return sharding &&
         llvm::any_of(sharding.getPartial(), [&](PartialAttr partial) {
           return contains(partial.getAxis(), axis);
         });
}

/// The split over `axes` that comes closest to the placements; the caller
/// checks whether it fits.
static OpSplit findSplit(const ShardingRule &rule, MeshOp mesh,
                         ArrayRef<AxisRefAttr> axes,
                         ArrayRef<ShardingAttr> operands,
                         ArrayRef<ShardingAttr> results) {
  OpSplit split = getReplicatedSplit(rule, mesh);
  auto dimsAgree = [&](AxisRefAttr axis, std::optional<unsigned> factor) {
    for (auto [sharding, tensor] : llvm::zip(operands, rule.operands))
      if (!agrees(sharding, axis, tensor, factor))
        return false;
    for (auto [sharding, tensor] : llvm::zip(results, rule.results))
      if (!agrees(sharding, axis, tensor, factor))
        return false;
    return true;
  };
  for (AxisRefAttr axis : axes) {
    bool anyPartial = llvm::any_of(operands, [&](ShardingAttr sharding) {
      return isPartial(sharding, axis);
    });
    bool found = false;
    for (unsigned factor = 0; factor < rule.factors.size() && !found; ++factor)
      if (!anyPartial && dimsAgree(axis, factor)) {
        if (split.factorAxes[factor].empty())
          split.factorSegments[factor] =
              inferSegments(rule, factor, axis, operands, results);
        if (!canSplit(rule, split, factor, axis))
          continue;
        split.factorAxes[factor].push_back(axis);
        found = true;
      }
    for (unsigned set = 0; set < rule.linearSets.size() && !found; ++set) {
      bool same = llvm::all_of(llvm::enumerate(operands), [&](auto item) {
        return isPartial(item.value(), axis) ==
               llvm::is_contained(rule.linearSets[set], item.index());
      });
      if (same && anyPartial && dimsAgree(axis, std::nullopt)) {
        split.linearAxes.push_back({set, axis});
        found = true;
      }
    }
  }
  return split;
}

/// Whether the placements differ only in spelling, like all parts of a mesh
/// dimension and the whole.
static bool haveSameBlocks(ShardingAttr a, ShardingAttr b, Type type,
                           MeshOp mesh) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || a.getPartial() != b.getPartial())
    return false;
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    TensorBlock one = getBlock(tensor.getShape(), a, mesh, rank);
    TensorBlock other = getBlock(tensor.getShape(), b, mesh, rank);
    int64_t numShared = getNumShared(one, other);
    if (numShared != getNumElements(one) || numShared != getNumElements(other))
      return false;
  }
  return true;
}

std::optional<OpSplit> tp::inferSplit(const ShardingRule &rule, MeshOp mesh,
                                      ArrayRef<ShardingAttr> operands) {
  SmallVector<AxisRefAttr> axes = collectAxes(operands, {});
  for (ArrayRef<AxisRefAttr> parts :
       {axes, cutAxes(rule, mesh, axes, operands, {})}) {
    OpSplit split = findSplit(rule, mesh, parts, operands, {});
    if (llvm::all_of(llvm::enumerate(operands), [&](auto operand) {
          auto [index, sharding] = operand;
          return !sharding ||
                 sharding == getOperandSharding(rule, split, index);
        }))
      return split;
  }
  return std::nullopt;
}

FailureOr<OpSplit> tp::inferSplit(ShardingRuleOpInterface op, MeshOp mesh,
                                  int64_t rank, ArrayRef<ShardingAttr> operands,
                                  ArrayRef<ShardingAttr> results) {
  ShardingRule rule = op.getShardingRule();
  auto fits = [&](const OpSplit &split) {
    auto check = [&](ArrayRef<ShardingAttr> given, TypeRange types,
                     auto getExpected) {
      for (auto [index, sharding] : llvm::enumerate(given)) {
        ShardingAttr expected = getExpected(rule, split, index);
        if (expected != sharding &&
            !(expected &&
              haveSameBlocks(expected, sharding, types[index], mesh)))
          return false;
      }
      return true;
    };
    return check(operands, op->getOperandTypes(), getOperandSharding) &&
           check(results, op->getResultTypes(), getResultSharding);
  };
  SmallVector<AxisRefAttr> axes = collectAxes(operands, results);
  OpSplit split = findSplit(rule, mesh, axes, operands, results);
  if (!fits(split))
    split = findSplit(rule, mesh, cutAxes(rule, mesh, axes, operands, results),
                      operands, results);
  split.rank = rank;
  if (fits(split))
    return split;
  auto describe = [&](ArrayRef<ShardingAttr> shardings) {
    std::string text;
    for (ShardingAttr sharding : shardings)
      text += (text.empty() ? "" : ", ") + printPlacements(sharding, mesh);
    return text;
  };
  std::string text;
  llvm::raw_string_ostream os(text);
  rule.print(os);
  InFlightDiagnostic diag = op->emitError()
                            << "placements break the sharding rule of '"
                            << op->getName() << "': " << describe(operands)
                            << " -> " << describe(results);
  diag.attachNote() << "the rule is " << text;
  return diag;
}

bool tp::isAlikeAlong(ShardingRuleOpInterface op, unsigned factor,
                      ArrayRef<AxisRefAttr> axes, MeshOp mesh) {
  ShardingRule rule = op.getShardingRule();
  OpSplit split = getReplicatedSplit(rule, mesh);
  llvm::append_range(split.factorAxes[factor], axes);
  split.rank = mesh.getGroupOf(0, axes).back();
  auto getBlocks = [&](TypeRange types, auto getSharding) {
    SmallVector<Type> blocks;
    for (auto [index, type] : llvm::enumerate(types)) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      ShardingAttr sharding = getSharding(rule, split, index);
      blocks.push_back(!tensor ? type
                       : !sharding
                           ? Type()
                           : getLocalType(tensor, sharding, mesh, split.rank));
    }
    return blocks;
  };
  SmallVector<Type> from = getBlocks(op->getOperandTypes(), getOperandSharding);
  SmallVector<Type> to = getBlocks(op->getResultTypes(), getResultSharding);
  if (llvm::is_contained(from, Type()) || llvm::is_contained(to, Type()))
    return false;
  Block block;
  block.addArguments(from, SmallVector<Location>(from.size(), op->getLoc()));
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&block);
  if (failed(op.partition(builder, block.getArguments(), to, split)) ||
      !llvm::hasSingleElement(block))
    return false;
  Operation &built = block.front();
  return built.getName() == op->getName() &&
         built.getPropertiesAsAttribute() == op->getPropertiesAsAttribute() &&
         llvm::all_of(llvm::zip_equal(built.getRegions(), op->getRegions()),
                      [](auto regions) {
                        return OperationEquivalence::isRegionEquivalentTo(
                            &std::get<0>(regions), &std::get<1>(regions),
                            OperationEquivalence::IgnoreLocations);
                      });
}
