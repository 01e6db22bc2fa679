//===- RedistributionView.h - Dimensions as products ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONVIEW_H
#define TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONVIEW_H

#include "tp/Dialect/TP/TP.h"
#include <optional>

namespace mlir::tp::redistribution {

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

#endif // TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONVIEW_H
