//===- SplitSearch.h - Which splits placed operands allow -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_SPLITSEARCH_H
#define TP_LIB_PROOF_SPLITSEARCH_H

#include "BlockAlgebra.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// How factors may be split that only an op's results have.
struct FreeSplits {
  ArrayRef<AxisRefAttr> axes;
  /// In these segments, each on its own; and in any number of equal ones.
  ArrayRef<ArrayRef<int64_t>> segments;
  bool inEqualSegments = false;
};

/// The splits for which the rule of `op`, an op on global values, asks for
/// exactly the blocks that `operands` gives to the ranks. Factors that no
/// operand has are split in all ways that `free` allows, each axis to one
/// factor. None where the placements break the rule; `reason` says why.
SmallVector<OpSplit> findSplits(ShardingRuleOpInterface op, MeshOp mesh,
                                BlockAlgebra &algebra,
                                ArrayRef<ShardingAttr> operands,
                                const FreeSplits &free, std::string &reason);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_SPLITSEARCH_H
