//===- PlanRedistribution.h - Steps between two placements ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_REDISTRIBUTION_PLANREDISTRIBUTION_H
#define TP_LIB_SHARDING_REDISTRIBUTION_PLANREDISTRIBUTION_H

#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include <optional>

namespace mlir::tp::redistribution {

/// The plan of RedistributionPlanner::plan. `to` can be reached from `from`.
/// Adds the number of placements that the searches examine to `numStates`.
RedistributionPlan planRedistribution(MeshOp mesh, ShardingAttr from,
                                      ShardingAttr to, RankedTensorType type,
                                      RedistributionOptions options,
                                      uint64_t &numStates);

/// The slices that give every rank its block of `to` from its block of `from`,
/// one per dimension; empty if all blocks stay the same. Nullopt if a rank
/// lacks an element, or if sizes that don't divide give ranks pieces that no
/// slice describes.
std::optional<SmallVector<RedistributionStep>>
findLocalSlices(MeshOp mesh, ArrayRef<int64_t> shape, ShardingAttr from,
                ShardingAttr to);

/// A tensor, in its own shape or in a view, and its placements.
struct RedistributionProblem {
  SmallVector<int64_t> shape;
  ShardingAttr from, to;
  /// As in RedistributionPlan.
  SmallVector<SmallVector<int64_t>> view = {};
};

/// Views each dimension of `plain`, which has no view, as the product of the
/// parts into which both placements cut it, if the cuts have common bounds.
/// Every axis of either placement then splits all of one part. Nullopt if no
/// dimension is divided.
std::optional<RedistributionProblem>
findView(MeshOp mesh, const RedistributionProblem &plain);

} // namespace mlir::tp::redistribution

#endif // TP_LIB_SHARDING_REDISTRIBUTION_PLANREDISTRIBUTION_H
