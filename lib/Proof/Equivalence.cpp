//===- Equivalence.cpp - Per-rank programs against their model ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Proof/Equivalence.h"
#include "ExactCheck.h"
#include "ProgramForms.h"
#include "ProgramMatcher.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

FailureOr<SmallVector<Program>> tp::getRanks(ArrayRef<func::FuncOp> functions,
                                             MeshOp mesh) {
  FailureOr<SmallVector<func::FuncOp>> byRank =
      getProgramsByRank(functions, mesh.getNumRanks());
  if (failed(byRank))
    return failure();
  SmallVector<Program> programs;
  for (func::FuncOp function : functions) {
    Program &program = programs.emplace_back();
    program.function = function;
    for (auto [rank, runs] : llvm::enumerate(*byRank))
      if (runs == function)
        program.ranks.push_back(rank);
  }
  return programs;
}

static Equivalence prove(ReferenceGraph &reference, ArrayRef<Program> programs,
                         MeshOp mesh) {
  Equivalence equivalence;
  ProgramMatcher matcher(reference, programs, mesh);
  equivalence.mismatch = matcher.run();
  // Forms of the reference don't outlive its graph.
  if (auto &mismatch = equivalence.mismatch; mismatch && mismatch->reference) {
    mismatch->referenceAt = mismatch->reference->getLoc();
    if (!reference.getFunction()->isAncestor(mismatch->reference))
      mismatch->reference = nullptr;
  }
  equivalence.numByRule = matcher.numByRule;
  equivalence.numHelpers = matcher.numHelpers;
  equivalence.numMovements = matcher.numMovements;
  if (!equivalence.mismatch)
    equivalence.verdict = Verdict::Proven;
  return equivalence;
}

/// Tries to prove the programs after splitting buckets and joining chunks;
/// nullopt if that doesn't prove them. All programs must have the same buckets
/// and chunks, or they would wait for each other.
static std::optional<Equivalence> proveRestored(ReferenceGraph &reference,
                                                ArrayRef<Program> programs,
                                                MeshOp mesh, bool keepAlike) {
  func::FuncOp first = programs.front().function;
  auto isConcat = [](ConcatOpInterface) { return WalkResult::interrupt(); };
  if (!first->walk(isConcat).wasInterrupted())
    return std::nullopt;
  auto module = first->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> copy = module.clone();
  SmallVector<Program> restored;
  SmallVector<unsigned> buckets;
  SmallVector<std::pair<unsigned, unsigned>> chunks;
  for (Program program : programs) {
    program.function =
        copy->lookupSymbol<func::FuncOp>(program.function.getSymNameAttr());
    auto ownBuckets = splitBuckets(program, mesh, keepAlike);
    auto ownChunks = joinChunks(program.function, mesh);
    if (!restored.empty() && (ownBuckets != buckets || ownChunks != chunks))
      return std::nullopt;
    buckets = std::move(ownBuckets);
    chunks = std::move(ownChunks);
    restored.push_back(std::move(program));
  }
  Equivalence equivalence = prove(reference, restored, mesh);
  return equivalence.mismatch ? std::nullopt : std::optional(equivalence);
}

/// The op, and all that depends on it, in the order of its function.
static SmallVector<Operation *> getDependents(Operation *op) {
  if (isa<func::FuncOp>(op))
    return {};
  SetVector<Operation *> slice;
  getForwardSlice(op, &slice);
  slice.insert(op);
  SmallVector<Operation *> dependents;
  op->getParentOfType<func::FuncOp>().walk([&](Operation *each) {
    if (slice.contains(each) && !each->hasTrait<OpTrait::IsTerminator>())
      dependents.push_back(each);
  });
  return dependents;
}

/// Tries one form of the reference after the other, and then each form together
/// with the ops that its ops consist of. If none is proven, returns the result
/// for the first form.
static Equivalence proveAny(func::FuncOp reference, ArrayRef<Program> programs,
                            MeshOp mesh, ArrayRef<func::FuncOp> otherForms) {
  std::optional<Equivalence> first;
  SmallVector<func::FuncOp> forms = {reference};
  llvm::append_range(forms, otherForms);
  for (bool withParts : {false, true})
    for (func::FuncOp form : forms) {
      ReferenceGraph graph(form, withParts);
      Equivalence found = prove(graph, programs, mesh);
      if (!first)
        first = found;
      if (!found.mismatch || found.mismatch->isInterface)
        return found;
      for (bool keepAlike : {false, true})
        if (auto restored = proveRestored(graph, programs, mesh, keepAlike))
          return *restored;
    }
  return *first;
}

Equivalence tp::checkEquivalence(func::FuncOp reference,
                                 ArrayRef<Program> programs, MeshOp mesh,
                                 const EquivalenceOptions &options) {
  Equivalence equivalence;
  if (options.prove)
    equivalence = proveAny(reference, programs, mesh, options.otherForms);
  bool isProven = equivalence.verdict == Verdict::Proven;
  if (equivalence.mismatch)
    equivalence.executed = getDependents(equivalence.mismatch->op);
  if (!options.maxOperations || (isProven && !options.alwaysExecute) ||
      (equivalence.mismatch && equivalence.mismatch->isInterface))
    return equivalence;

  ExactCheck check(reference, programs, mesh, options.maxOperations, isProven);
  ExactCheck::Outcome outcome = check.run();
  equivalence.numOperations = check.getNumOperations();
  equivalence.numInputs = check.getNumInputs();
  equivalence.reason = check.reason;
  equivalence.at = check.at;
  switch (outcome) {
  case ExactCheck::Outcome::Equal:
    if (!isProven)
      equivalence.verdict = Verdict::Tested;
    break;
  case ExactCheck::Outcome::NotExecuted:
    equivalence.numOperations = 0;
    break;
  case ExactCheck::Outcome::Different:
    equivalence.verdict = Verdict::Refuted;
    equivalence.inputs = check.printInputs();
    equivalence.result = check.result;
    if (check.result)
      equivalence.difference = check.difference;
    if (equivalence.mismatch && equivalence.mismatch->reference)
      equivalence.differenceAtOp = check.findDifference(
          equivalence.mismatch->op, equivalence.mismatch->reference);
    // If rules prove what execution refutes, a rule is wrong.
    if (isProven)
      equivalence.mismatch =
          Mismatch{programs.front().function, 0,
                   "the rules prove it, but it computes something else: a rule "
                   "or a partition hook must be wrong",
                   nullptr};
    break;
  }
  return equivalence;
}
