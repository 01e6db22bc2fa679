//===- Propagation.h - Placements for a whole program -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fixed placements (of arguments, results, parameters, redistributions,
// constraints) spread through the sharding rules, forward and backward, until
// nothing changes. That gives each op its candidates. The search then chooses
// one candidate per op so that the CommunicationCost of the whole program is
// lowest: it moves few bytes in few collectives and, at equal communication,
// has the least to compute. Functions are analyzed once per call, and region
// ops through the values that they pass on.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_PROPAGATION_PROPAGATION_H
#define TP_SHARDING_PROPAGATION_PROPAGATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/CommunicationCost.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include <memory>

namespace mlir::tp {

class TimeObjective;

namespace propagation {
class Graph;
} // namespace propagation

enum class PropagationStrategy {
  /// One op after the other in program order, then local improvement.
  Greedy,
  /// The optimum over the whole program, or the result of a bounded search with
  /// a known gap.
  Optimal,
};

struct PropagationOptions {
  PropagationStrategy strategy = PropagationStrategy::Optimal;
  /// Programs of up to this many ops consider every split of every op over all
  /// mesh dimensions; larger ones only the splits that spread from fixed
  /// placements.
  unsigned exhaustiveOps = 256;
  /// The bytes that a rank could receive in the time that a collective takes to
  /// start.
  int64_t latencyBytes = 64 * 1024;
  /// How redistributions will be planned: the cost of each is the cost of its
  /// plan.
  RedistributionOptions redistributions = {};
  /// The largest table of the exact search.
  size_t maxEntries = size_t(1) << 20;
  /// Whether equal layers are elided and decided together with a layer that is
  /// alike, if that makes no difference to the result.
  bool elidesLayers = true;
  /// The search's budget for problems whose tables would be larger: how many
  /// costs of moves between placements it may look at.
  uint64_t searchBudget = 500'000'000;
  /// If set, what ranks compute and hold counts beside what they receive, and
  /// every op considers every split. It outlives the propagation.
  const TimeObjective *objective = nullptr;

  /// Whether a program of `numOps` ops considers every split.
  bool isExhaustive(unsigned numOps) const {
    return objective || numOps <= exhaustiveOps;
  }
};

/// Chooses the placements of a program.
class Propagation {
public:
  /// A function, or a copy of it with placements of its own.
  struct Function {
    func::FuncOp op;
    /// The placements of arguments, results of ops and arguments of regions.
    DenseMap<Value, ShardingAttr> shardings;
    /// The placements that ops give to results, if the IR fixes others.
    DenseMap<Value, ShardingAttr> given;
    /// The placement that an operand needs, if its value has another.
    DenseMap<OpOperand *, ShardingAttr> needed;
    /// The function (index into `functions`) that a call calls.
    DenseMap<Operation *, unsigned> callees;
  };

  /// Another choice for one op, with all other ops unchanged.
  struct Alternative {
    SmallVector<ShardingAttr, 0> operands, results;
    /// How much more the program would cost.
    CommunicationCost delta;
  };

  Propagation(MeshOp mesh, PropagationOptions options);
  ~Propagation();

  /// Chooses the placements of `roots` and of all functions that they call.
  /// Emits errors.
  LogicalResult run(ArrayRef<func::FuncOp> roots);

  const PropagationOptions &getOptions() const;
  /// The planner, with the plans of the chosen moves.
  RedistributionPlanner &getPlanner() const;
  /// The graph of the program that was analyzed.
  const propagation::Graph &getGraph() const;
  /// The roots first; calls with equal placements share one function.
  ArrayRef<Function> getFunctions() const;
  /// Like getFunctions, but moves the functions out.
  SmallVector<Function> takeFunctions();
  /// The cost of the choice, and a lower bound for every choice.
  CommunicationCost getCost() const;
  CommunicationCost getLowerBound() const;
  /// The number of elided layers: they weren't analyzed themselves but decided
  /// together with a layer that is alike.
  size_t getNumElidedLayers() const;
  /// The cheapest other choices for `op` of function number `function`, best
  /// first.
  SmallVector<Alternative> getAlternatives(unsigned function, Operation *op,
                                           unsigned limit) const;

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_PROPAGATION_H
