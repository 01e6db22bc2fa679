//===- ShardingRuleOpInterface.h - Sharding rules of ops --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_SHARDINGRULEOPINTERFACE_H
#define TP_INTERFACES_SHARDINGRULEOPINTERFACE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ShardingRule.h"

namespace mlir::tp {

/// How one op runs over the mesh: for each factor of its rule, the mesh axes
/// that split it, major to minor; for each linear set, the axes over which the
/// op passes a Partial through.
struct OpSplit {
  MeshOp mesh;
  SmallVector<SmallVector<AxisRefAttr>> factorAxes;
  /// The segments of a factor, each of which is split on its own; empty if the
  /// factor is split as a whole.
  SmallVector<SmallVector<int64_t>> factorSegments;
  /// A rank that runs the program; all ranks that run it have blocks of the
  /// same sizes.
  int64_t rank = 0;
  /// (index into ShardingRule::linearSets, axis)
  SmallVector<std::pair<unsigned, AxisRefAttr>> linearAxes;

  bool isReplicated() const;
  /// All axes that the op is split or linear over.
  SmallVector<AxisRefAttr> usedAxes() const;
};

/// The placement of an operand that `split` asks for. Null if no placement
/// describes the blocks of some dimension. Examples are a product of two split
/// factors whose major one isn't split into single elements, and a window that
/// cuts a segment.
ShardingAttr getOperandSharding(const ShardingRule &rule, const OpSplit &split,
                                unsigned operand);
/// The placement of a result that `split` gives; null in the same cases.
ShardingAttr getResultSharding(const ShardingRule &rule, const OpSplit &split,
                               unsigned result);

/// Maps `start`, where a segment begins, to its position in the block of
/// `split.rank`, for a dimension of `size` elements that is `factor`. The
/// rank's parts of all earlier segments lie before it. Returns `start` if the
/// factor is split as a whole.
int64_t getLocalStart(const OpSplit &split, unsigned factor, int64_t size,
                      int64_t start);

/// Clones `op` with new operands and result types; keeps its attributes and
/// regions.
FailureOr<SmallVector<Value>> clonePartitioned(Operation *op,
                                               OpBuilder &builder,
                                               ValueRange operands,
                                               TypeRange resultTypes);

} // namespace mlir::tp

#include "tp/Interfaces/ShardingRuleOpInterface.h.inc"

#endif // TP_INTERFACES_SHARDINGRULEOPINTERFACE_H
