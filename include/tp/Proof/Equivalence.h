//===- Equivalence.h - Per-rank programs against their model ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the programs that ranks run compute the blocks of what a function on
// global values computes. Proven by the ops' sharding rules and by block
// algebra where that is possible, for all inputs; else tested, by execution on
// inputs that look for boundaries (docs/Proof.md).
//
//===----------------------------------------------------------------------===//

#ifndef TP_PROOF_EQUIVALENCE_H
#define TP_PROOF_EQUIVALENCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"
#include <optional>
#include <string>

namespace mlir::tp {

/// What some ranks run.
struct Program {
  func::FuncOp function;
  SmallVector<int64_t> ranks;
};

/// The programs with the ranks that run them, as `tp.ranks` says. Fails with an
/// error unless every rank of the mesh runs exactly one.
FailureOr<SmallVector<Program>> getRanks(ArrayRef<func::FuncOp> functions,
                                         MeshOp mesh);

/// A per-rank op that can't be shown to compute what the reference does.
struct Mismatch {
  Operation *op = nullptr;
  /// Index into the programs.
  unsigned program = 0;
  std::string reason;
  /// The op of the reference's function that it seems to stand for; null where
  /// none does, or where a form of the reference does that the proof built.
  Operation *reference = nullptr;
  /// Whether arguments, parameters or results aren't what they are to be.
  bool isInterface = false;
  /// Where the reference computes what it seems to stand for.
  std::optional<Location> referenceAt = std::nullopt;
};

/// An element of a rank's block that differs from the reference's.
struct Difference {
  int64_t rank = 0;
  /// Its place in the block and in the global value; both empty where the block
  /// has another shape.
  SmallVector<int64_t> local, global;
  /// What it is, and what the reference's is.
  std::string found, expected;
};

enum class Verdict {
  /// Equal for all inputs, if the ops' rules and partition hooks are right.
  Proven,
  /// Not all of it is proven; executed on some inputs, the results agree.
  Tested,
  /// Executed on some inputs, the results differ.
  Refuted,
  /// None of these: it can't be executed, or no inputs show what a part of it
  /// does.
  Unproven,
};

struct EquivalenceOptions {
  /// Whether to prove.
  bool prove = true;
  /// Whether to execute what is proven, too.
  bool alwaysExecute = false;
  /// Scalar operations, of the reference and all ranks together, that may be
  /// executed; 0: none.
  int64_t maxOperations = 1'000'000'000;
  /// Functions that compute what the reference does, otherwise written: to be
  /// equal to one of them is to be equal to it.
  SmallVector<func::FuncOp, 1> otherForms;
};

struct Equivalence {
  Verdict verdict = Verdict::Unproven;
  /// Ops of the first program that a rule proves, others that are parts of
  /// their per-rank forms, and data movements followed by block algebra.
  int64_t numByRule = 0, numHelpers = 0, numMovements = 0;
  /// Scalar operations executed, and on how many inputs all results agreed.
  int64_t numOperations = 0, numInputs = 0;
  /// The first op that isn't proven, if any.
  std::optional<Mismatch> mismatch;
  /// What is left to execution: that op, and those of its program that depend
  /// on it, in order.
  SmallVector<Operation *> executed;
  /// Of what is different: the result's index and the element.
  std::optional<unsigned> result;
  std::optional<Difference> difference;
  /// An element that is wrong already in the result of `mismatch->op`.
  std::optional<Difference> differenceAtOp;
  /// Names and values of arguments and parameters that show the difference.
  SmallVector<std::pair<std::string, std::string>> inputs;
  /// Why it couldn't be executed, or what else went wrong, and where.
  std::string reason;
  std::optional<Location> at;
};

/// `programs` must have as many arguments and results as `reference`, one block
/// each, and no modules.
Equivalence checkEquivalence(func::FuncOp reference, ArrayRef<Program> programs,
                             MeshOp mesh,
                             const EquivalenceOptions &options = {});

} // namespace mlir::tp

#endif // TP_PROOF_EQUIVALENCE_H
