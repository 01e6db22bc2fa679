//===- PlanRedistribution.h - The steps between two placements --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_REDISTRIBUTION_PLANREDISTRIBUTION_H
#define TP_LIB_SHARDING_REDISTRIBUTION_PLANREDISTRIBUTION_H

#include "tp/Sharding/Redistribution/Redistribution.h"

namespace mlir::tp::redistribution {

/// The plan of RedistributionPlanner::plan. `to` can be reached from `from`.
/// Adds the number of placements that the searches examine to `numStates`.
RedistributionPlan planRedistribution(MeshOp mesh, ShardingAttr from,
                                      ShardingAttr to, RankedTensorType type,
                                      RedistributionOptions options,
                                      uint64_t &numStates);

} // namespace mlir::tp::redistribution

#endif // TP_LIB_SHARDING_REDISTRIBUTION_PLANREDISTRIBUTION_H
