//===- TimeBound.cpp - The least time of plans ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TimeBound.h"
#include "tp/Plan/Plan.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;

/// The number of examples in the batch that data parallelism splits; 0 if there
/// is none.
static int64_t getBatchSize(ModuleOp model) {
  plan::CheckedPlan split;
  if (failed(plan::parsePlan("mesh: {dp: 2}\ndata_parallel: {dp: ddp}\n",
                             "auto-plan", model.getContext(), split.file)) ||
      failed(plan::checkPlan(model, split)))
    return 0;
  int64_t batch = 0;
  for (auto &[input, dim] : split.batchDims)
    batch = std::max(batch,
                     cast<RankedTensorType>(input.getType()).getDimSize(dim));
  return batch;
}

TimeBound::TimeBound(ModuleOp model, const TrainingText &train,
                     StringRef machineName, const Machine &machine)
    : machine(machine), isTraining(!train.path.empty()) {
  MeshUse alone{{{"dp", 1}}, {AxisRole::DDP}};
  FailureOr<PlanCost> cost =
      predictPlan(model, printPlan(alone, {}), train, machineName);
  if (failed(cost))
    return;
  seconds = cost->seconds;
  batch = getBatchSize(model);
}

double TimeBound::get(const MeshUse &use) const {
  int64_t data = 1, tensor = 1, stride = 1;
  bool shardsState = false;
  double message = 0;
  for (size_t i = use.mesh.size(); i-- > 0;) {
    int64_t size = use.mesh[i].size;
    if (use.roles[i] == AxisRole::Tensor) {
      tensor *= size;
      const Link &link = machine.links[machine.getLink(0, (size - 1) * stride)];
      // Measurements may be faster than the link's own latency.
      double latency = link.latency;
      for (const MeasuredCollective &measured : link.collectives)
        latency = std::min(latency, measured.latency);
      message = message == 0 ? latency : std::min(message, latency);
    } else {
      data *= size;
      shardsState |= use.roles[i] == AxisRole::FSDP;
    }
    stride *= size;
  }
  double share = 1.0 / data;
  if (batch > 0 && !(isTraining && shardsState))
    share = static_cast<double>(llvm::divideCeil(batch, data)) / batch;
  return seconds * share / tensor + message;
}
