//===- TimeBound.h - The least time of plans --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLANNING_TIMEBOUND_H
#define TP_LIB_PLANNING_TIMEBOUND_H

#include "MeshUse.h"
#include "PlanCost.h"
#include "tp/Sharding/Cost/MachineModel.h"

namespace mlir::tp::planning {

/// Lower bounds of the seconds that any plan takes. The ranks together do at
/// least the work of one rank that computes alone. They divide it evenly at
/// best. The batch is divided by whole examples. A dimension that splits
/// parameters also needs at least one message.
class TimeBound {
public:
  /// Predicts one rank. Without a prediction, all bounds are 0.
  TimeBound(ModuleOp model, const TrainingText &train, StringRef machineName,
            const Machine &machine);

  double get(const MeshUse &use) const;

private:
  const Machine &machine;
  /// Of one rank that computes everything.
  double seconds = 0;
  /// The number of examples; 0 if the model has no batch.
  int64_t batch = 0;
  /// Whether the ranks also update parameters, which FSDP divides by all ranks.
  bool isTraining;
};

} // namespace mlir::tp::planning

#endif // TP_LIB_PLANNING_TIMEBOUND_H
