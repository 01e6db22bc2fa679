//===- Propagation.h - Placements for a whole program -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is fixed (arguments, results, parameters, redistributions, constraints)
// spreads through the sharding rules, forward and backward, until nothing
// changes: that gives each op its candidates. Of these, one per op is chosen
// such that the whole program moves the fewest bytes, and, of equal ones, has
// the fewest collectives and the least to compute. Functions are looked at once
// per call, region ops through what they pass on.
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

enum class PropagationStrategy {
  /// One op after the other in program order, then local improvement.
  Greedy,
  /// The optimum over the whole program, or a bounded search with a known gap.
  Optimal,
};

struct PropagationOptions {
  PropagationStrategy strategy = PropagationStrategy::Optimal;
  /// Functions of up to so many ops consider every split of every op over all
  /// mesh dimensions, in any order; larger ones only those that spread from what
  /// is fixed.
  unsigned exhaustiveOps = 256;
  /// The bytes that a rank could receive in the time that a collective takes to
  /// begin.
  int64_t latencyBytes = 64 * 1024;
  /// How redistributions are going to be planned: what each costs is what its
  /// plan does.
  RedistributionOptions redistributions = {};
  /// The largest table of the exact search.
  size_t maxEntries = size_t(1) << 20;
  /// Whether parts that a function repeats, as the layers of a model, are
  /// looked at once where that makes no difference.
  bool mergesRepeated = true;
  /// How many costs of moves between placements are looked at to bound what has
  /// larger tables.
  uint64_t searchBudget = 500'000'000;
};

/// The placements of one function as one caller sees it.
class Propagation {
public:
  /// A function, or a copy of it with placements of its own.
  struct Function {
    func::FuncOp op;
    /// Of arguments, results of ops and arguments of regions.
    DenseMap<Value, ShardingAttr> shardings;
    /// What ops give for results that the IR places otherwise.
    DenseMap<Value, ShardingAttr> given;
    /// What an operand must be placed as, where it isn't.
    DenseMap<OpOperand *, ShardingAttr> needed;
    /// The function (index into `functions`) that a call calls.
    DenseMap<Operation *, unsigned> callees;
  };

  /// A choice that could have been made for one op, all others as they are.
  struct Alternative {
    SmallVector<ShardingAttr, 0> operands, results;
    /// What the program would cost more.
    CommunicationCost delta;
  };

  Propagation(MeshOp mesh, PropagationOptions options);
  ~Propagation();

  /// Decides for `roots` and all that they call. Emits what is wrong.
  LogicalResult run(ArrayRef<func::FuncOp> roots);

  const PropagationOptions &getOptions() const;
  /// Knows the plans of the moves that were decided.
  RedistributionPlanner &getPlanner();
  /// The roots first; calls with equal placements share one function.
  ArrayRef<Function> getFunctions() const;
  /// The same, for good.
  SmallVector<Function> takeFunctions();
  /// What the choice costs, and what every choice costs at least.
  CommunicationCost getCost() const;
  CommunicationCost getLowerBound() const;
  /// How many parts of a program that repeats them were decided for with
  /// others that are alike, and not looked at.
  size_t getNumMergedParts() const;
  /// The cheapest other choices for `op` of function 0 to n, best first.
  SmallVector<Alternative> getAlternatives(unsigned function, Operation *op,
                                           unsigned limit) const;

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_PROPAGATION_H
