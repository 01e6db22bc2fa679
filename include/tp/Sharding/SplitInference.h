//===- SplitInference.h - Splits that explain placements --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SHARDING_SPLITINFERENCE_H
#define TP_SHARDING_SPLITINFERENCE_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// Finds, for each mesh dimension, the factor or linear set that the op is
/// split along, such that its rule gives exactly these placements. If there is
/// none, the placements break the op's rule: emits an error on `op` and fails.
/// `rank` is a rank that runs the op with this split.
FailureOr<OpSplit> inferSplit(ShardingRuleOpInterface op, MeshOp mesh,
                              int64_t rank, ArrayRef<ShardingAttr> operands,
                              ArrayRef<ShardingAttr> results);

/// The split that gives exactly the placements of `operands`; a null one fits
/// every split. nullopt if there is none.
std::optional<OpSplit> inferSplit(const ShardingRule &rule, MeshOp mesh,
                                  ArrayRef<ShardingAttr> operands);

/// The segments of `factor`, which `axis` splits, according to the placements
/// of an op's tensors: those of a dimension without a window if there is one,
/// else those of the windows that cover the factor, joined. Null placements are
/// ignored.
SmallVector<int64_t> inferSegments(const ShardingRule &rule, unsigned factor,
                                   AxisRefAttr axis,
                                   ArrayRef<ShardingAttr> operands,
                                   ArrayRef<ShardingAttr> results);

/// An empty split (replicated over every mesh dimension).
OpSplit getReplicatedSplit(const ShardingRule &rule, MeshOp mesh);

/// Whether `axis` may split `factor` further: either it splits it evenly, or
/// each tensor dimension that has the factor has no other factor larger than 1.
bool canSplit(const ShardingRule &rule, const OpSplit &split, unsigned factor,
              AxisRefAttr axis);

/// Whether `op` computes each block along `factor` in the same way, wherever
/// the block begins. `factor` is parallel, and `axes` split it evenly. The test
/// is whether the partition hook, for the last block, builds exactly this op.
/// It doesn't for an op that counts positions.
bool isAlikeAlong(ShardingRuleOpInterface op, unsigned factor,
                  ArrayRef<AxisRefAttr> axes, MeshOp mesh);

} // namespace mlir::tp

#endif // TP_SHARDING_SPLITINFERENCE_H
