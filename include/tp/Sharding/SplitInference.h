//===- SplitInference.h - Which split explains placements -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SHARDING_SPLITINFERENCE_H
#define TP_SHARDING_SPLITINFERENCE_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// Finds, for each mesh dimension, the factor or linear set that the op is
/// split along, such that its rule gives exactly these placements. Emits an
/// error on `op` and fails where there is none: the placements break the op's
/// rule.
/// `rank` is one that the split is for.
FailureOr<OpSplit> inferSplit(ShardingRuleOpInterface op, MeshOp mesh,
                              int64_t rank, ArrayRef<ShardingAttr> operands,
                              ArrayRef<ShardingAttr> results);

/// The segments that placements of an op's tensors give to `factor`, where
/// `axis` splits it: those of a dimension that is the whole factor, else those
/// that the windows on it make up together. Null placements aren't looked at.
SmallVector<int64_t> inferSegments(const ShardingRule &rule, unsigned factor,
                                   AxisRefAttr axis,
                                   ArrayRef<ShardingAttr> operands,
                                   ArrayRef<ShardingAttr> results);

/// An empty split (replicated over every mesh dimension).
OpSplit getReplicatedSplit(const ShardingRule &rule, MeshOp mesh);

/// Whether `axis` may split `factor` further: evenly, or where the factor is
/// all of a dimension wherever it is.
bool canSplit(const ShardingRule &rule, const OpSplit &split, unsigned factor,
              AxisRefAttr axis);

/// Whether `op` computes what lies along `factor`, a parallel one that `axes`
/// split evenly, alike wherever it lies: for the last block, its partition hook
/// builds the op itself. One that counts positions does not.
bool isAlikeAlong(ShardingRuleOpInterface op, unsigned factor,
                  ArrayRef<AxisRefAttr> axes, MeshOp mesh);

} // namespace mlir::tp

#endif // TP_SHARDING_SPLITINFERENCE_H
