//===- FunctionPartitioner.h - One rank's program of a function -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_FUNCTIONPARTITIONER_H
#define TP_LIB_TRANSFORMS_FUNCTIONPARTITIONER_H

#include "LocalForms.h"
#include "RedistributionWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Sharding/Redistribution/Redistribution.h"

namespace mlir::tp {

/// Builds the program of `rank` and of all other ranks whose blocks have the
/// same shapes.
class FunctionPartitioner {
public:
  /// `callees` maps each called function to its program for these ranks.
  FunctionPartitioner(func::FuncOp function, MeshOp mesh, int64_t rank,
                      RedistributionPlanner &planner,
                      const DenseMap<Operation *, func::FuncOp> &callees)
      : function(function), mesh(mesh), rank(rank), planner(planner),
        callees(callees), builder(function.getContext()),
        redistributions(mesh, rank, builder), forms(mesh, rank) {}

  LogicalResult run();

private:
  FailureOr<ShardingAttr> getSharding(Value value, Operation *user);
  /// The placements of the operands of `op`.
  FailureOr<SmallVector<ShardingAttr>> getOperandShardings(Operation *op);
  /// The local value for `value`, for an op that is built here or by a hook.
  Value getLocalValue(Value value);
  /// Gives the ops that stay their local operands and types.
  void finishKept();
  LogicalResult partitionInterface();
  /// Builds the local form of `op` at the builder's insertion point.
  LogicalResult partition(Operation *op);
  LogicalResult partitionRuleOp(ShardingRuleOpInterface op);
  /// Completes the ops that the partition hook of `op` made: [begin, end).
  void finishMade(Operation *op, Block::iterator begin, Block::iterator end);
  LogicalResult partitionRegionOp(RegionBranchOpInterface op);
  LogicalResult partitionCall(CallOpInterface op);
  LogicalResult partitionRedistribute(RedistributeOp op);
  LogicalResult partitionAssign(AssignOpInterface op);
  void setRegionArguments(RegionBranchOpInterface op, Region &region);
  /// A copy of `op` on local operands, with the results' placements and empty
  /// regions.
  FailureOr<Operation *> cloneLocal(Operation *op);
  Type getLocal(Type type, ShardingAttr sharding) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? getLocalType(tensor, sharding, mesh, rank) : type;
  }

  func::FuncOp function;
  MeshOp mesh;
  int64_t rank;
  RedistributionPlanner &planner;
  const DenseMap<Operation *, func::FuncOp> &callees;
  OpBuilder builder;
  DenseMap<Value, ShardingAttr> shardings;
  IRMapping local;
  RedistributionWriter redistributions;
  LocalForms forms;
  /// The ops that stay.
  std::vector<std::pair<Operation *, LocalForm *>> kept;
  /// Block arguments that stand for results of ops that stay, until these have
  /// their local types.
  SmallVector<std::pair<BlockArgument, Value>> standIns;
  /// The placement of each parameter that has been partitioned.
  DenseMap<StringAttr, ShardingAttr> parameters;
  /// Those whose values are used.
  DenseSet<StringAttr> readParameters;
};

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_FUNCTIONPARTITIONER_H
