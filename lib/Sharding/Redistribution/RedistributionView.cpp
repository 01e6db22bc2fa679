//===- RedistributionView.cpp - Dimensions as products --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanRedistribution.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

std::optional<RedistributionProblem>
redistribution::findView(MeshOp mesh, const RedistributionProblem &plain) {
  ShardingAttr from = plain.from, end = plain.to;
  MLIRContext *context = from.getContext();
  llvm::StringMap<PartBounds> axisBounds;
  auto mention = [&](AxisRefAttr axis) {
    auto whole = AxisRefAttr::get(context, axis.getName());
    PartBounds &bounds =
        axisBounds.try_emplace(axis.getName(), mesh.getAxisSize(whole))
            .first->second;
    return bounds.add(getPartBegin(axis)) && bounds.add(getPartEnd(mesh, axis));
  };
  for (ShardingAttr sharding : {from, end}) {
    for (AxisListAttr list : sharding.getDims())
      if (!llvm::all_of(list, mention))
        return std::nullopt;
    for (PartialAttr partial : sharding.getPartial())
      if (!mention(partial.getAxis()))
        return std::nullopt;
  }
  auto getParts = [&](AxisListAttr list) {
    SmallVector<AxisRefAttr> parts;
    for (AxisRefAttr axis : list) {
      ArrayRef<int64_t> bounds =
          axisBounds.find(axis.getName())
              ->second.getBetween(getPartBegin(axis), getPartEnd(mesh, axis));
      for (auto [b, e] : llvm::zip(bounds, bounds.drop_front()))
        parts.push_back(getPart(mesh, axis.getName(), b, e));
    }
    return parts;
  };

  int64_t rank = plain.shape.size();
  SmallVector<std::optional<PartBounds>> dimBounds(rank);
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t dim = 0; dim < rank; ++dim) {
      AxisListAttr have = from.getDims()[dim], want = end.getDims()[dim];
      dimBounds[dim].reset();
      if (!have.getSegments().empty() || !want.getSegments().empty() ||
          plain.shape[dim] == 0)
        continue;
      PartBounds bounds(plain.shape[dim]);
      bool fits = true;
      for (AxisListAttr list : {have, want}) {
        int64_t product = 1;
        for (AxisRefAttr part : getParts(list)) {
          product *= mesh.getAxisSize(part);
          fits = fits && bounds.add(product);
        }
      }
      if (!fits)
        continue;
      // Also cuts the parts that contain a bound of the other placement.
      for (AxisListAttr list : {have, want}) {
        int64_t product = 1;
        for (AxisRefAttr part : getParts(list)) {
          int64_t size = mesh.getAxisSize(part);
          for (int64_t bound : bounds.getBetween(product, product * size)) {
            PartBounds &cuts = axisBounds.find(part.getName())->second;
            size_t before = cuts.get().size();
            cuts.add(getPartBegin(part) * (bound / product));
            changed |= cuts.get().size() != before;
          }
          product *= size;
        }
      }
      dimBounds[dim] = std::move(bounds);
    }
  }

  RedistributionProblem problem;
  SmallVector<AxisListAttr> lists[2];
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<int64_t> &sizes = problem.view.emplace_back();
    AxisListAttr ends[] = {from.getDims()[dim], end.getDims()[dim]};
    if (!dimBounds[dim]) {
      sizes.push_back(plain.shape[dim]);
      lists[0].push_back(ends[0]);
      lists[1].push_back(ends[1]);
    } else {
      ArrayRef<int64_t> bounds = dimBounds[dim]->get();
      for (auto [b, e] : llvm::zip(bounds, bounds.drop_front()))
        sizes.push_back(e / b);
      if (sizes.empty())
        sizes.push_back(1);
      for (int side : {0, 1}) {
        SmallVector<AxisRefAttr> parts = getParts(ends[side]);
        for (size_t i = 0; i < sizes.size(); ++i)
          lists[side].push_back(AxisListAttr::get(
              context,
              i < parts.size() ? ArrayRef(parts[i]) : ArrayRef<AxisRefAttr>()));
      }
    }
    llvm::append_range(problem.shape, sizes);
  }
  if (static_cast<int64_t>(problem.shape.size()) == rank)
    return std::nullopt;
  problem.from =
      ShardingAttr::get(context, from.getMesh(), lists[0], from.getPartial());
  problem.to =
      ShardingAttr::get(context, from.getMesh(), lists[1], end.getPartial());
  return problem;
}
