//===- RankGrouper.h - Ranks that share a program ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_RANKGROUPER_H
#define TP_LIB_TRANSFORMS_RANKGROUPER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/RankClasses.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::tp {

/// Groups the ranks by the program that they run. Ranks share a program if
/// their blocks of every value, and of every step of a redistribution, have the
/// same shapes.
class RankGrouper {
public:
  RankGrouper(MeshOp mesh, RedistributionPlanner &planner)
      : planner(planner), classes(mesh) {}

  /// Takes the placements of `function` into account; fails with an error if a
  /// redistribution isn't possible.
  LogicalResult add(func::FuncOp function);
  /// The ranks of each program, in order.
  SmallVector<SmallVector<int64_t>> getGroups();

private:
  void add(Type type, ShardingAttr sharding);
  /// The sharding that the IR gives; null if there is none.
  ShardingAttr getSharding(Value value);

  RedistributionPlanner &planner;
  RankClasses classes;
  DenseSet<std::pair<Type, ShardingAttr>> added;
};

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_RANKGROUPER_H
