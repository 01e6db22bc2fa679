//===- PlanChecks.h - checks of a plan and of its model ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_PLANCHECKS_H
#define TP_LIB_PLAN_PLANCHECKS_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// "'layers.0'" or "the root module".
inline std::string describeModule(StringRef fqn) {
  return fqn.empty() ? "the root module" : "'" + fqn.str() + "'";
}

/// The sizes of the segments of a dimension of size `size`, each of which the
/// Shard `placement` splits on its own.
SmallVector<int64_t> getSegments(const Placement &placement, int64_t size);

/// "uneven": a Shard whose dimension doesn't divide evenly. `tensor` is the
/// tensor's name in the message.
std::optional<Finding> checkEvenness(const Placement &placement,
                                     RankedTensorType type, const Twine &tensor,
                                     const MeshGroup &group,
                                     FileLineColLoc loc);

/// "replicated-parameter": large weights that no entry places.
void checkReplicatedParameters(CheckedPlan &plan, ModuleOp model);

/// "16 and 24": the multiples of `ranks` next to `size`, below and above.
std::string listDividingSizes(int64_t size, int64_t ranks);
/// "2, 5, 10": the numbers of ranks, up to 1024, that divide `size`; "1" only
/// if there are no others.
std::string listDivisors(int64_t size);

/// Finds the dimension of each input that data parallelism splits. The plan may
/// name it; the default is dimension 0 of the first tensor and of all others
/// whose dimension 0 has the same size. Emits an error at the plan's line and
/// column for each problem.
LogicalResult findBatch(ModuleOp model, CheckedPlan &plan);

/// Finds the group of each parameter: the innermost module that contains it
/// among those that the plan names, or else among the model's blocks; otherwise
/// the root. Emits an error at the plan's line and column for each pattern that
/// matches no module.
LogicalResult findFsdpGroups(ModuleOp model, CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_PLANCHECKS_H
