//===- PlacementSearch.cpp - Placements of parameters by cost -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlacementSearch.h"
#include "Transforms/PlanWriter.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Plan/Plan.h"
#include "tp/Sharding/Propagation/Propagation.h"
#include "tp/Sharding/Propagation/TimeObjective.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;

/// The innermost link that joins the ranks along the dimensions `axes`.
static const Link &getLink(const MeshUse &use, const plan::AxisSet &axes,
                           const Machine &machine) {
  int64_t last = 0, stride = 1;
  for (size_t axis = use.mesh.size(); axis-- > 0;) {
    if (llvm::is_contained(axes, axis))
      last += (use.mesh[axis].size - 1) * stride;
    stride *= use.mesh[axis].size;
  }
  return machine.links[machine.getLink(0, last)];
}

/// The placement of `sharding` over the mesh dimension `name`. A dimension that
/// is split in parts counts as replicated, because plans have no placement for
/// that.
static plan::Placement getPlacement(ShardingAttr sharding, StringRef name) {
  for (auto [dim, axes] : llvm::enumerate(sharding.getDims()))
    for (AxisRefAttr axis : axes)
      if (axis.getName() == name && axis.isWhole()) {
        ArrayRef<int64_t> segments = axes.getSegments();
        if (!segments.empty() && llvm::all_equal(segments))
          return plan::Placement::stridedShard(dim, segments.size());
        plan::Placement placement = plan::Placement::shard(dim);
        placement.segments.assign(segments.begin(), segments.end());
        return placement;
      }
  return plan::Placement::replicate();
}

FailureOr<ParameterPlacements>
planning::searchPlacements(ModuleOp model, const MeshUse &use,
                           const Machine &machine, double holding,
                           uint64_t searchBudget) {
  // Data parallelism leaves parameters whole while they are used, and computing
  // and communicating both shrink with the batch. So the search is for the
  // other dimensions alone.
  plan::AxisSet tensor = use.getTensorAxes();
  MeshUse alone;
  for (unsigned axis : tensor) {
    alone.mesh.push_back(use.mesh[axis]);
    alone.roles.push_back(AxisRole::Tensor);
  }
  OwningOpRef<ModuleOp> copy = model.clone();
  plan::CheckedPlan plan;
  MLIRContext *context = model.getContext();
  if (failed(plan::parsePlan(printPlan(alone, {}), "auto-plan", context,
                             plan.file)) ||
      failed(plan::checkPlan(*copy, plan)) || failed(writePlan(plan, *copy)))
    return failure();
  inlineModules(*copy);
  dropGradientForms(*copy);
  FailureOr<MeshOp> mesh = getMesh(*copy);
  FailureOr<SmallVector<func::FuncOp>> roots = getRoots(*copy);
  if (failed(mesh) || failed(roots))
    return failure();

  const Link &link = getLink(use, tensor, machine);
  TimeObjective objective(machine, *mesh, link.bandwidth, holding);
  PropagationOptions options;
  options.objective = &objective;
  options.searchBudget = searchBudget;
  int64_t steps = 1;
  if (link.algorithm == LinkAlgorithm::Ring)
    for (unsigned axis : tensor)
      steps *= use.mesh[axis].size;
  constexpr double kMaxLatencyBytes = int64_t(1) << 40;
  options.latencyBytes = static_cast<int64_t>(
      std::min(link.latency * link.bandwidth * steps, kMaxLatencyBytes));
  Propagation propagation(*mesh, options);
  if (failed(propagation.run(*roots)))
    return failure();
  ParameterPlacements placements;
  for (const Propagation::Function &function : propagation.getFunctions()) {
    func::FuncOp op = function.op;
    op.walk([&](ParameterOpInterface parameter) {
      ShardingAttr sharding = function.shardings.lookup(parameter.getResult());
      if (!sharding)
        return;
      SmallVector<plan::Placement, 1> list;
      for (unsigned axis : tensor)
        list.push_back(getPlacement(sharding, use.mesh[axis].name));
      placements.insert({parameter.getFqnAttr(), std::move(list)});
    });
  }
  return placements;
}
