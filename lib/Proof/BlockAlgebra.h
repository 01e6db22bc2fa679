//===- BlockAlgebra.h - Effect of data movement on blocks -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes the placement of the result of a per-rank data movement op from the
// intervals that every rank holds: a gather concatenates the lists of its group
// in the group's order, a slice keeps part of a list, a reduction removes the
// Partial over the ranks that it joins. This is independent of the code that
// builds the ops: it uses neither the redistribution planner nor its steps.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_BLOCKALGEBRA_H
#define TP_LIB_PROOF_BLOCKALGEBRA_H

#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Dialect/TP/Intervals.h"
#include "tp/Dialect/TP/TP.h"
#include <string>

namespace mlir::tp {

/// The intervals of one dimension of a global value that each rank holds, in
/// their local order; adjacent ones are merged.
using DimBlocks = std::vector<Intervals>;

class BlockAlgebra {
public:
  explicit BlockAlgebra(MeshOp mesh) : mesh(mesh) {}

  /// Whether `op` is one that `apply` knows.
  static bool isMovement(Operation *op);

  /// The placement of the result of `op` if its operand is, on each rank, the
  /// block of a value of type `global` with the placement `from`. Fails if the
  /// result isn't a block of the value; `reason` then says why.
  FailureOr<ShardingAttr> apply(Operation *op, RankedTensorType global,
                                ShardingAttr from, std::string &reason);

  /// The placement with these partials that gives the ranks `blocks` of each
  /// dimension, if there is one. Tries the axes of `from` first.
  FailureOr<ShardingAttr> findPlacement(RankedTensorType global,
                                        ShardingAttr from,
                                        ArrayRef<PartialAttr> partials,
                                        SmallVector<DimBlocks> blocks);

  /// Whether both placements give the same elements to every rank and have the
  /// same Partial.
  bool isSame(RankedTensorType global, ShardingAttr a, ShardingAttr b);

  /// The type of the blocks of `ranks`; null if they have different types.
  RankedTensorType getLocalType(RankedTensorType global, ShardingAttr sharding,
                                ArrayRef<int64_t> ranks);

  const DimBlocks &getBlocks(int64_t size, AxisListAttr axes);

private:
  struct Move;

  MeshOp mesh;
  DenseMap<std::pair<int64_t, AxisListAttr>, std::unique_ptr<DimBlocks>> cache;
};

/// The Partial of `sharding` over mesh dimensions of more than one rank,
/// divided into parts as `cuts` needs them.
SmallVector<PartialAttr> getPartials(MeshOp mesh, ShardingAttr sharding,
                                     ArrayRef<AxisRefAttr> cuts);

/// All ways to divide `axes` into parts of prime size.
SmallVector<SmallVector<AxisRefAttr>> getPrimeParts(MeshOp mesh,
                                                    ArrayRef<AxisRefAttr> axes);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_BLOCKALGEBRA_H
