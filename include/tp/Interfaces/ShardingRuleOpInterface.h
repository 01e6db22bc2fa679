//===- ShardingRuleOpInterface.h - Sharding rules of ops --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_SHARDINGRULEOPINTERFACE_H
#define TP_INTERFACES_SHARDINGRULEOPINTERFACE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ShardingRule.h"

namespace mlir::tp {

/// How one op runs over the mesh: for each factor of its rule the mesh axes that
/// split it, major to minor, and per linear set the axes over which the op
/// passes a Partial through.
struct OpSplit {
  MeshOp mesh;
  SmallVector<SmallVector<AxisRefAttr>> factorAxes;
  /// The segments of a factor that are split each on its own; empty: it is split
  /// as one.
  SmallVector<SmallVector<int64_t>> factorSegments;
  /// A rank that runs the program: the sizes of its blocks are those of all ranks
  /// that do.
  int64_t rank = 0;
  /// (index into ShardingRule::linearSets, axis)
  SmallVector<std::pair<unsigned, AxisRefAttr>> linearAxes;

  bool isReplicated() const;
  /// All axes that the op is split or linear over.
  SmallVector<AxisRefAttr> usedAxes() const;
};

/// The placement of an operand that `split` asks for; null when the tensor has a
/// dimension whose blocks no placement describes: of a product of factors that are
/// split both, of a window that cuts a segment.
ShardingAttr getOperandSharding(const ShardingRule &rule, const OpSplit &split,
                                unsigned operand);
/// The placement of a result that `split` gives.
ShardingAttr getResultSharding(const ShardingRule &rule, const OpSplit &split,
                               unsigned result);

/// Where the part of a dimension that begins at element `start` begins in the
/// block of `split.rank`, for a dimension of `size` elements that is `factor`:
/// whole segments before it are this rank's parts of them. A factor that is
/// split as one has no parts; `start` is returned.
int64_t getLocalStart(const OpSplit &split, unsigned factor, int64_t size,
                      int64_t start);

/// Clones `op` with new operands and result types, attributes and regions kept.
FailureOr<SmallVector<Value>> clonePartitioned(Operation *op,
                                               OpBuilder &builder,
                                               ValueRange operands,
                                               TypeRange resultTypes);

} // namespace mlir::tp

#include "tp/Interfaces/ShardingRuleOpInterface.h.inc"

#endif // TP_INTERFACES_SHARDINGRULEOPINTERFACE_H
