//===- RuleBuilders.h - Ops that external models create ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_EXTENSIONS_RULEBUILDERS_H
#define TP_LIB_EXTENSIONS_RULEBUILDERS_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// `value` on the ranks that come first along `axes`, and all elements
/// `neutral` on the others: a value that every rank has then counts once.
Value buildOnFirst(OpBuilder &builder, Location loc, MeshOp mesh,
                   ArrayRef<AxisRefAttr> axes, Value value, TypedAttr neutral);

/// Turns an index in a rank's block into a global index.
class GlobalIndex {
public:
  /// Along `factor` of `size` elements, split as `split` says; looks the rank's
  /// offsets up at the insertion point of `builder`.
  GlobalIndex(OpBuilder &builder, Location loc, const OpSplit &split,
              unsigned factor, int64_t size);

  /// Replaces the uses of `index`, of index type, which is one in the block.
  void replace(OpBuilder &builder, Value index) const;

private:
  Value build(OpBuilder &builder, Value index) const;

  /// A run of elements that are consecutive in the block and globally.
  struct Run {
    int64_t begin;
    /// The global index minus that in the block; null for 0.
    Value shift;
  };
  SmallVector<Run> runs;
};

/// The rank's block of `constant`, an op without operands and with one result,
/// which is copied as a whole and then cut.
FailureOr<SmallVector<Value>> sliceConstant(Operation *constant,
                                            OpBuilder &builder, Type type,
                                            const OpSplit &split,
                                            const TensorFactors &factors);

} // namespace mlir::tp

#endif // TP_LIB_EXTENSIONS_RULEBUILDERS_H
