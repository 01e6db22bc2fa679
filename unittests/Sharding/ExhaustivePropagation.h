//===- ExhaustivePropagation.h - All placements of a program ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A reference for the propagation, and none of its code. It knows the rules of
// ops, the costs of redistributions and what docs/Propagation.md says of costs.
//
//===----------------------------------------------------------------------===//

#ifndef TP_UNITTESTS_SHARDING_EXHAUSTIVEPROPAGATION_H
#define TP_UNITTESTS_SHARDING_EXHAUSTIVEPROPAGATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "llvm/ADT/SetVector.h"
#include <vector>

namespace mlir::tp::test {

/// How costs are counted.
struct CostOptions {
  MeshOp mesh;
  RedistributionPlanner &planner;
  int64_t latencyBytes;

  /// The communication that moving a value costs.
  CommunicationCost getMove(ShardingAttr from, ShardingAttr to,
                            RankedTensorType type, bool isParameter);
  /// The communication of an op's partition hook. All but the work, which only
  /// decides between choices of equal communication.
  CommunicationCost getOwn(ShardingRuleOpInterface op, const OpSplit &split);

private:
  CommunicationCost withVolume(CommunicationCost cost);
};

/// Every way to run each op of a function of ops with rules and of
/// redistributions, and every set of placements that the values still in use
/// may have been brought to. Ops are split over whole mesh dimensions, which
/// nest in any order, and not in segments. Arguments and results without a
/// placement are replicated.
class ExhaustivePropagation {
public:
  ExhaustivePropagation(func::FuncOp function, CostOptions options);

  enum class Outcome { None, Found, TooLarge };
  /// Searches the placements that cost at most `limit`; if there are any,
  /// `least` is their least cost.
  Outcome run(const CommunicationCost &limit);
  CommunicationCost least;

private:
  struct Way {
    SmallVector<ShardingAttr> operands, results;
    CommunicationCost cost = {};
    /// The numbers of the placements.
    SmallVector<unsigned> needs = {}, gives = {};
  };
  /// An op, an argument, a result, or a redistribution. Values are numbers.
  struct Step {
    SmallVector<unsigned> operands, results;
    std::vector<Way> ways = {};
  };
  struct Value {
    RankedTensorType type;
    bool isParameter;
    SmallVector<unsigned> users = {};
  };

  unsigned addValue(mlir::Value value, bool isParameter);
  void addOp(ShardingRuleOpInterface op);
  void addFixed(SmallVector<unsigned> operands, SmallVector<unsigned> results,
                ShardingAttr sharding);
  void addStep(Step step);
  /// Every split of every mesh dimension.
  std::vector<OpSplit> getSplits(const ShardingRule &rule);
  /// An order in which values are in use for a short while only.
  SmallVector<unsigned> getOrder() const;
  const CommunicationCost &getMove(unsigned value, unsigned from, unsigned to);

  CostOptions options;
  std::vector<Step> steps;
  std::vector<Value> values;
  DenseMap<mlir::Value, unsigned> numbers;
  SetVector<ShardingAttr> placements;
  DenseMap<std::tuple<unsigned, unsigned, unsigned>, CommunicationCost> moves;
};

} // namespace mlir::tp::test

#endif // TP_UNITTESTS_SHARDING_EXHAUSTIVEPROPAGATION_H
