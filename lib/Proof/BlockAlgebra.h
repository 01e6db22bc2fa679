//===- BlockAlgebra.h - What data movement does to blocks -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the result of a per-rank data movement op lives, worked out from the
// intervals that every rank holds: a gather concatenates the lists of its group
// in the group's order, a slice keeps part of a list, a reduction ends the
// Partial of the ranks that it joins. Nothing here knows why the op was built:
// neither the redistribution planner nor its steps are looked at.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_BLOCKALGEBRA_H
#define TP_LIB_PROOF_BLOCKALGEBRA_H

#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Dialect/TP/Intervals.h"
#include "tp/Dialect/TP/TP.h"
#include <string>

namespace mlir::tp {

/// By rank, the intervals of one dimension of a global value that the rank's
/// local one consists of, in their local order; neighbours are merged.
using DimBlocks = std::vector<Intervals>;

class BlockAlgebra {
public:
  explicit BlockAlgebra(MeshOp mesh) : mesh(mesh) {}

  /// Whether `op` is one that `apply` knows.
  static bool isMovement(Operation *op);

  /// The placement of the result of `op` when its operand is, on each rank, the
  /// block of a value of type `global` that `from` says. Where that is no
  /// block of the value, `reason` says why.
  FailureOr<ShardingAttr> apply(Operation *op, RankedTensorType global,
                                ShardingAttr from, std::string &reason);

  /// The placement that gives the ranks `blocks` of each dimension, with these
  /// partials, if there is one; it may be like `from`.
  FailureOr<ShardingAttr> findPlacement(RankedTensorType global,
                                        ShardingAttr from,
                                        ArrayRef<PartialAttr> partials,
                                        SmallVector<DimBlocks> blocks);

  /// Whether both placements give the same elements to every rank, and are
  /// Partial alike.
  bool isSame(RankedTensorType global, ShardingAttr a, ShardingAttr b);

  /// The type of the ranks' blocks where all of `ranks` have the same; null
  /// where they haven't.
  RankedTensorType getLocalType(RankedTensorType global, ShardingAttr sharding,
                                ArrayRef<int64_t> ranks);

  const DimBlocks &getBlocks(int64_t size, AxisListAttr axes);

private:
  struct Move;

  MeshOp mesh;
  DenseMap<std::pair<int64_t, AxisListAttr>, std::unique_ptr<DimBlocks>> cache;
};

/// The Partial over mesh dimensions of more than one rank, in parts as `cuts`
/// needs them.
SmallVector<PartialAttr> getPartials(MeshOp mesh, ShardingAttr sharding,
                                     ArrayRef<AxisRefAttr> cuts);

/// All ways to take `axes` apart into parts of prime size.
SmallVector<SmallVector<AxisRefAttr>> getPrimeParts(MeshOp mesh,
                                                    ArrayRef<AxisRefAttr> axes);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_BLOCKALGEBRA_H
