//===- ShardingRuleOpInterface.cpp - Sharding rules of ops ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "mlir/IR/IRMapping.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Dialect/TP/Blocks.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

#include "tp/Interfaces/ShardingRuleOpInterface.cpp.inc"

bool OpSplit::isReplicated() const {
  return linearAxes.empty() && llvm::all_of(factorAxes, [](const auto &axes) {
           return axes.empty();
         });
}

SmallVector<AxisRefAttr> OpSplit::usedAxes() const {
  SmallVector<AxisRefAttr> axes;
  for (const auto &list : factorAxes)
    llvm::append_range(axes, list);
  for (auto [set, axis] : linearAxes)
    axes.push_back(axis);
  return axes;
}

/// The most segments that a split minor factor may give a dimension.
constexpr int64_t kMaxSegments = 16;

/// The segments of `all` that lie in the window; nullopt if the window cuts
/// one.
static std::optional<SmallVector<int64_t>> getSegmentsIn(ArrayRef<int64_t> all,
                                                         const Window &window) {
  SmallVector<int64_t> inside;
  int64_t begin = 0, covered = 0;
  for (int64_t segment : all) {
    int64_t end = begin + segment;
    if (begin >= window.start && end <= window.start + window.size) {
      inside.push_back(segment);
      covered += segment;
    }
    begin = end;
  }
  if (covered != window.size)
    return std::nullopt;
  if (inside.size() == 1)
    inside.clear();
  return inside;
}

/// The axes of one dimension of `total` elements that is the product of
/// `factors`, major first. If
/// a minor factor is split and the major ones aren't, each index of the major
/// ones is a segment.
static std::optional<AxisListAttr>
getDimAxes(const ShardingRule &rule, const OpSplit &split,
           ArrayRef<unsigned> factors, int64_t total, const Window *window) {
  MeshOp mesh = split.mesh;
  MLIRContext *context = mesh.getContext();
  SmallVector<AxisRefAttr> axes;
  SmallVector<int64_t> segments;
  int64_t before = 1;
  bool majorWhole = true;
  for (unsigned factor : factors) {
    ArrayRef<AxisRefAttr> own = split.factorAxes[factor];
    int64_t size = rule.factors[factor].size;
    if (!own.empty()) {
      if (!majorWhole) {
        // There is one segment for each combination of indices of the major
        // factors.
        if (!axes.empty() || before > kMaxSegments ||
            !split.factorSegments[factor].empty())
          return std::nullopt;
        segments.assign(before, total / before);
      } else if (!split.factorSegments[factor].empty()) {
        if (!axes.empty())
          return std::nullopt;
        for (int64_t segment : split.factorSegments[factor])
          segments.push_back(segment * (total / before / size));
      }
      llvm::append_range(axes, own);
    }
    before *= size;
    majorWhole &=
        mesh.getAxesSize(own) == size && split.factorSegments[factor].empty();
  }
  if (axes.empty())
    return AxisListAttr::get(context, {});
  if (window) {
    auto inside = getSegmentsIn(segments, *window);
    if (!inside)
      return std::nullopt;
    segments = *inside;
  }
  // If sizes don't divide, splitting by parts one after the other gives other
  // blocks than splitting by the whole.
  int64_t ranks = mesh.getAxesSize(axes);
  bool isEven = segments.empty() ? total % ranks == 0
                                 : llvm::all_of(segments, [&](int64_t segment) {
                                     return segment % ranks == 0;
                                   });
  if (!window && isEven)
    axes = mergeParts(mesh, axes);
  return AxisListAttr::get(context, axes, segments);
}

static std::optional<SmallVector<AxisListAttr>>
getTensorAxes(const ShardingRule &rule, const OpSplit &split, bool isResult,
              unsigned tensor) {
  SmallVector<AxisListAttr> dims;
  const TensorFactors &all =
      isResult ? rule.results[tensor] : rule.operands[tensor];
  for (auto [dim, factors] : llvm::enumerate(all)) {
    auto axes =
        getDimAxes(rule, split, factors, rule.getDimSize(isResult, tensor, dim),
                   rule.getWindow(isResult, tensor, dim));
    if (!axes)
      return std::nullopt;
    dims.push_back(*axes);
  }
  return dims;
}

/// Partials in the mesh's order; Partials over consecutive parts of a mesh
/// dimension are merged.
static SmallVector<PartialAttr> mergePartials(ArrayRef<PartialAttr> partials,
                                              MeshOp mesh) {
  SmallVector<PartialAttr> sorted(partials);
  auto getKey = [&](PartialAttr partial) {
    return std::tuple(*mesh.getAxisIndex(partial.getAxis().getName()),
                      partial.getAxis().getPreSize());
  };
  llvm::sort(sorted, [&](PartialAttr a, PartialAttr b) {
    return getKey(a) < getKey(b);
  });
  SmallVector<PartialAttr> merged;
  for (PartialAttr partial : sorted) {
    if (!merged.empty() && merged.back().getKind() == partial.getKind()) {
      auto axes =
          mergeParts(mesh, {merged.back().getAxis(), partial.getAxis()});
      if (axes.size() == 1) {
        merged.back() = PartialAttr::get(mesh.getContext(), axes.front(),
                                         partial.getKind());
        continue;
      }
    }
    merged.push_back(partial);
  }
  return merged;
}

ShardingAttr tp::getOperandSharding(const ShardingRule &rule,
                                    const OpSplit &split, unsigned operand) {
  auto dims = getTensorAxes(rule, split, /*isResult=*/false, operand);
  if (!dims)
    return {};
  MeshOp mesh = split.mesh;
  SmallVector<PartialAttr> partial;
  for (auto [set, axis] : split.linearAxes)
    if (llvm::is_contained(rule.linearSets[set], operand))
      partial.push_back(
          PartialAttr::get(mesh.getContext(), axis, ReductionKind::Sum));
  return ShardingAttr::get(mesh.getContext(),
                           FlatSymbolRefAttr::get(mesh.getSymNameAttr()), *dims,
                           mergePartials(partial, mesh));
}

ShardingAttr tp::getResultSharding(const ShardingRule &rule,
                                   const OpSplit &split, unsigned result) {
  auto dims = getTensorAxes(rule, split, /*isResult=*/true, result);
  if (!dims)
    return {};
  MeshOp mesh = split.mesh;
  MLIRContext *context = mesh.getContext();
  SmallVector<PartialAttr> partial;
  for (auto [index, axes] : llvm::enumerate(split.factorAxes))
    if (rule.factors[index].kind == FactorKind::Reduction ||
        llvm::is_contained(rule.factors[index].summedResults, result))
      for (AxisRefAttr axis : axes)
        partial.push_back(
            PartialAttr::get(context, axis, rule.factors[index].reduction));
  for (auto [set, axis] : split.linearAxes)
    partial.push_back(PartialAttr::get(context, axis, ReductionKind::Sum));
  return ShardingAttr::get(context,
                           FlatSymbolRefAttr::get(mesh.getSymNameAttr()), *dims,
                           mergePartials(partial, mesh));
}

FailureOr<SmallVector<Value>> tp::clonePartitioned(Operation *op,
                                                   OpBuilder &builder,
                                                   ValueRange operands,
                                                   TypeRange resultTypes) {
  Operation *clone = Operation::create(
      op->getLoc(), op->getName(), resultTypes, operands,
      op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
      BlockRange(), op->getNumRegions());
  for (auto [from, to] : llvm::zip(op->getRegions(), clone->getRegions())) {
    IRMapping mapping;
    from.cloneInto(&to, mapping);
  }
  builder.insert(clone);
  return SmallVector<Value>(clone->getResults());
}

int64_t tp::getLocalStart(const OpSplit &split, unsigned factor, int64_t size,
                          int64_t start) {
  MeshOp mesh = split.mesh;
  auto axes = AxisListAttr::get(mesh.getContext(), split.factorAxes[factor],
                                split.factorSegments[factor]);
  if (axes.getSegments().empty())
    return start;
  int64_t local = 0, begin = 0;
  for (auto [segment, mine] : llvm::zip(
           axes.getSegments(), getDimBlock(size, axes, mesh, split.rank))) {
    if (begin < start)
      local += mine.size;
    begin += segment;
  }
  return local;
}
