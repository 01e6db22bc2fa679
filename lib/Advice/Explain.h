//===- Explain.h - Data that tp-explain prints ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_EXPLAIN_H
#define TP_LIB_ADVICE_EXPLAIN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Plan/Plan.h"
#include "tp/Sharding/Propagation/Explanation.h"

namespace mlir::tp::explain {

/// A change of the plan or of the IR, and its effect on the whole program.
struct TriedEdit {
  /// "replace", "add" or "remove".
  std::string action;
  /// What is changed: a location in the plan, "plan.yaml:3:3", or a part of the
  /// IR.
  std::string place;
  /// The new entry or attribute; empty if it is removed.
  std::string text;
  /// Whether the redistribution is gone.
  bool removes = false;
  /// The change of the bytes that all ranks together receive, and of the
  /// collectives that each issues.
  int64_t bytes = 0, collectives = 0;
  /// The change of the bytes of parameters that each rank holds.
  int64_t parameterBytes = 0;
  /// A rank's computation with the edit, relative to that without it.
  double work = 1;
  /// "argument 0 becomes (Shard(0)) instead of (Replicate)", ….
  std::vector<std::string> interface;

  /// Whether it trades communication for something else: ranks hold or compute
  /// more.
  bool hasPrice() const { return parameterBytes > 0 || work > 1.05; }
};

/// The bytes that all ranks together receive, and the collectives that each
/// issues.
struct Totals {
  int64_t bytes = 0, collectives = 0;
};

/// The data to print.
struct Program {
  MeshOp mesh;
  ArrayRef<Propagation::Function> functions;
  Explanation explanation;
  /// Null if the program has no plan.
  const plan::CheckedPlan *plan = nullptr;
  /// The totals of the whole program, including parts that aren't shown: as
  /// propagated, and after tp-optimize-collectives.
  Totals total = {}, optimized = {};
  /// The most bytes by which the choice may be worse than the optimum.
  int64_t gap = 0;
  /// Indexed by movement, then best first.
  std::vector<std::vector<TriedEdit>> edits = {};
  /// The number of edits that were tried, and whether there were more.
  unsigned trials = 0;
  bool isCutShort = false;
};

void printText(const Program &program, raw_ostream &os);
void printJson(const Program &program, raw_ostream &os);
/// One remark per movement.
void emitRemarks(const Program &program);

/// Fills in `program.edits`. For each movement, tries changes of the entries or
/// attributes that its placements come from. Each change is applied to
/// `original`, which is propagated again as a whole; those that leave less to
/// move are kept. At most `limit` are tried.
void tryEdits(Program &program, const Propagation &propagation,
              ModuleOp original, PropagationOptions options, unsigned limit);

/// "model.mlir:3:8"; empty if it isn't known.
std::string printLocation(Location loc);

/// "nn.linear (up)", or the location instead of the module if it has none.
std::string printOp(Operation *op);

/// "'up.weight'", "argument 0 'x'", "nn.relu (act) result 1".
std::string printValue(Value value);

/// Empty if the argument has no name.
std::string getArgumentName(func::FuncOp function, unsigned index);

/// What fixes a placement: the value or op, and the reason.
struct NamedSource {
  StringRef kind;
  std::string what, by;
};

/// `chain` has a source.
NamedSource nameSource(const PlacementChain &chain, const Program &program);

} // namespace mlir::tp::explain

#endif // TP_LIB_ADVICE_EXPLAIN_H
