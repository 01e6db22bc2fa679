//===- RuleBuilders.h - ops that external models create ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_EXTENSIONS_RULEBUILDERS_H
#define TP_LIB_EXTENSIONS_RULEBUILDERS_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// `value` on the ranks that come first along `axes`, all elements `neutral` on
/// the others: what counts once although every rank has it.
Value buildOnFirst(OpBuilder &builder, Location loc, MeshOp mesh,
                   ArrayRef<AxisRefAttr> axes, Value value, TypedAttr neutral);

/// Turns an index along a rank's block into one along the whole.
class GlobalIndex {
public:
  /// Along `factor` of `size` elements, split as `split` says; looks the rank's
  /// offsets up at the insertion point of `builder`.
  GlobalIndex(OpBuilder &builder, Location loc, const OpSplit &split,
              unsigned factor, int64_t size);

  /// The index of the element that is at `index` (of index type) in the block.
  Value build(OpBuilder &builder, Location loc, Value index) const;

private:
  /// A run of elements that are consecutive in the block and in the whole.
  struct Run {
    int64_t begin;
    /// The index in the whole minus that in the block; null for 0.
    Value shift;
  };
  SmallVector<Run> runs;
};

/// The rank's block of `constant`, an op without operands and with one result,
/// which is copied as a whole and cut.
FailureOr<SmallVector<Value>> sliceConstant(Operation *constant,
                                            OpBuilder &builder, Type type,
                                            const OpSplit &split,
                                            const TensorFactors &factors);

} // namespace mlir::tp

#endif // TP_LIB_EXTENSIONS_RULEBUILDERS_H
