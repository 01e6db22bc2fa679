//===- Explain.h - What tp-explain knows and prints -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_EXPLAIN_H
#define TP_LIB_ADVICE_EXPLAIN_H

#include "tp/Plan/Plan.h"
#include "tp/Sharding/Propagation/Explanation.h"

namespace mlir::tp::explain {

/// A change of the plan or of the IR, and what it did to the whole program.
struct TriedEdit {
  /// "replace", "add" or "remove".
  std::string action;
  /// Where it is: of the plan "plan.yaml:3:3", of the IR what is changed.
  std::string place;
  /// The entry as it is then; empty where it is removed.
  std::string text;
  /// Whether the redistribution is gone.
  bool removes = false;
  /// Of all ranks together; of each rank.
  int64_t bytes = 0, collectives = 0;
  /// Of the parameters that each rank holds.
  int64_t parameterBytes = 0;
  /// What a rank computes then, as a part of what it computes now.
  double work = 1;
  /// "argument 0 comes as (Shard(0))", ….
  std::vector<std::string> interface;

  /// Whether it only moves the price: ranks hold or compute more.
  bool hasPrice() const { return parameterBytes > 0 || work > 1.05; }
};

/// What all ranks together receive, and what each issues.
struct Totals {
  int64_t bytes = 0, collectives = 0;
};

/// What is to be printed.
struct Program {
  MeshOp mesh;
  ArrayRef<Propagation::Function> functions;
  Explanation explanation;
  /// Null where the program came without.
  const plan::CheckedPlan *plan = nullptr;
  /// Of all of the program, also of what isn't shown; as propagated, and after
  /// tp-optimize-collectives.
  Totals total = {}, optimized = {};
  /// The bytes that the choice may be off the optimum.
  int64_t gap = 0;
  /// By movement, best first.
  std::vector<std::vector<TriedEdit>> edits = {};
  /// How many were tried, and whether there were more.
  unsigned trials = 0;
  bool isCutShort = false;
};

/// Keeps of `program` what is called `name` (docs/Explain.md); whether there
/// was any.
bool filter(Program &program, StringRef name);

void printText(const Program &program, raw_ostream &os);
void printJson(const Program &program, raw_ostream &os);
/// One remark per movement.
void emitRemarks(const Program &program);

} // namespace mlir::tp::explain

#endif // TP_LIB_ADVICE_EXPLAIN_H
