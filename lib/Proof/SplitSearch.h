//===- SplitSearch.h - Splits that placed operands allow --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_SPLITSEARCH_H
#define TP_LIB_PROOF_SPLITSEARCH_H

#include "BlockAlgebra.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// The allowed splits of factors that occur only in an op's results.
struct FreeSplits {
  ArrayRef<AxisRefAttr> axes;
  /// The segments that may each be split on their own; and whether any number
  /// of equal segments may be, too.
  ArrayRef<ArrayRef<int64_t>> segments;
  bool inEqualSegments = false;
};

/// The splits for which the rule of `op`, an op on global values, requires
/// exactly the blocks that `operands` gives to the ranks. Factors that no
/// operand has are split in all ways that `free` allows, each axis splitting at
/// most one factor. If the placements violate the rule, there is no split and
/// `reason` says why.
SmallVector<OpSplit> findSplits(ShardingRuleOpInterface op, MeshOp mesh,
                                BlockAlgebra &algebra,
                                ArrayRef<ShardingAttr> operands,
                                const FreeSplits &free, std::string &reason);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_SPLITSEARCH_H
