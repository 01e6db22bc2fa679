//===- SplitSearch.h - Which splits placed operands allow -------*- C++ -*-===//

#ifndef TP_LIB_PROOF_SPLITSEARCH_H
#define TP_LIB_PROOF_SPLITSEARCH_H

#include "BlockAlgebra.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// The splits for which the rule of `op`, an op on global values, asks for
/// exactly the blocks that `operands` gives to the ranks. Factors that no
/// operand has are split by any of `axes`, each to one factor, where that
/// leads to different splits. None where the placements break the rule;
/// `reason` says why.
SmallVector<OpSplit> findSplits(ShardingRuleOpInterface op, MeshOp mesh,
                                BlockAlgebra &algebra,
                                ArrayRef<ShardingAttr> operands,
                                ArrayRef<AxisRefAttr> axes,
                                std::string &reason);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_SPLITSEARCH_H
