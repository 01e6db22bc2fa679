//===- Equivalence.h - Per-rank programs against their model ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks whether the ranks' programs compute the blocks of the results of a
// reference, a function on global values. If possible, this is proven for all
// inputs, by the ops' sharding rules and by block algebra. Otherwise it is
// tested: the programs are executed on inputs that probe boundaries
// (docs/Proof.md).
//
//===----------------------------------------------------------------------===//

#ifndef TP_PROOF_EQUIVALENCE_H
#define TP_PROOF_EQUIVALENCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"
#include <optional>
#include <string>

namespace mlir::tp {

/// A per-rank program and the ranks that run it.
struct Program {
  func::FuncOp function;
  SmallVector<int64_t> ranks;
};

/// The programs with the ranks that run them, read from `tp.ranks`. Fails with
/// an error unless every rank of the mesh runs exactly one.
FailureOr<SmallVector<Program>> getRanks(ArrayRef<func::FuncOp> functions,
                                         MeshOp mesh);

/// A per-rank op that isn't proven to compute what the reference computes.
struct Mismatch {
  Operation *op = nullptr;
  /// Index into the programs.
  unsigned program = 0;
  std::string reason;
  /// The op of the reference's function that `op` seems to correspond to; null
  /// if there is none, or if it is one that the proof built as another form of
  /// the reference.
  Operation *reference = nullptr;
  /// Whether the mismatch is in the arguments, parameters or results.
  bool isInterface = false;
  /// The location of the reference's computation that `op` seems to correspond
  /// to.
  std::optional<Location> referenceAt = std::nullopt;
};

/// An element of a rank's block that differs from the reference's.
struct Difference {
  int64_t rank = 0;
  /// Its indices in the block and in the global value; both empty if the block
  /// has the wrong shape.
  SmallVector<int64_t> local, global;
  /// Its value, and the reference's.
  std::string found, expected;
};

enum class Verdict {
  /// Equal for all inputs, provided that the ops' rules and partition hooks are
  /// right.
  Proven,
  /// Not everything is proven, but the results agree on the inputs tried.
  Tested,
  /// The results differ on some input.
  Refuted,
  /// None of these: the programs can't be executed, or no input exercises some
  /// part of them.
  Unproven,
};

struct EquivalenceOptions {
  /// Whether to attempt a proof.
  bool prove = true;
  /// Whether to execute even if everything is proven.
  bool alwaysExecute = false;
  /// The most scalar operations that may be executed, of the reference and all
  /// ranks together; 0: none.
  int64_t maxOperations = 1'000'000'000;
  /// Functions that compute the same as the reference in another way. Programs
  /// that are equal to one of them are equal to the reference.
  SmallVector<func::FuncOp, 1> otherForms;
};

struct Equivalence {
  Verdict verdict = Verdict::Unproven;
  /// The number of ops of the first program that a rule proves, of other ops
  /// that are parts of their per-rank forms, and of data movements that block
  /// algebra follows.
  int64_t numByRule = 0, numHelpers = 0, numMovements = 0;
  /// The number of scalar operations executed, and of inputs on which all
  /// results agreed.
  int64_t numOperations = 0, numInputs = 0;
  /// The first op that isn't proven, if any.
  std::optional<Mismatch> mismatch;
  /// The ops that only execution checks: that op, and those of its program that
  /// depend on it, in order.
  SmallVector<Operation *> executed;
  /// The result that differs, by its index, and the element.
  std::optional<unsigned> result;
  std::optional<Difference> difference;
  /// An element that is already wrong in the result of `mismatch->op`.
  std::optional<Difference> differenceAtOp;
  /// Names and values of arguments and parameters that show the difference.
  SmallVector<std::pair<std::string, std::string>> inputs;
  /// Why the programs couldn't be executed, or what else failed, and where.
  std::string reason;
  std::optional<Location> at;
};

/// `programs` must have as many arguments and results as `reference`, each of
/// them one block, and must not contain modules.
Equivalence checkEquivalence(func::FuncOp reference, ArrayRef<Program> programs,
                             MeshOp mesh,
                             const EquivalenceOptions &options = {});

} // namespace mlir::tp

#endif // TP_PROOF_EQUIVALENCE_H
