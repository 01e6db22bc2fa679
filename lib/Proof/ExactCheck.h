//===- ExactCheck.h - Programs against a reference, by execution ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the reference and all ranks' programs over exact numbers (Executor.h) on
// inputs that look for boundaries (ExactInputs.h) and compares the blocks.
//
// Where nothing is compared or rounded, programs whose results agree compute
// the same function up to the probability that two different polynomials, or
// unknown functions of them, agree at a random point of a field of 2^61 - 1
// elements. Otherwise they must agree under the Free interpretation too, and
// the inputs must have met the boundaries of the integers that are compared.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_EXACTCHECK_H
#define TP_LIB_PROOF_EXACTCHECK_H

#include "ExactInputs.h"
#include "Executor.h"
#include "tp/Proof/Equivalence.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::tp {

class ExactCheck {
public:
  /// `budget`: scalar operations, of the reference and of all ranks together.
  /// `isProven`: what is right by rules needs no inputs that meet boundaries.
  ExactCheck(func::FuncOp reference, ArrayRef<Program> programs, MeshOp mesh,
             int64_t budget, bool isProven);

  enum class Outcome {
    Equal,
    /// `difference` says where.
    Different,
    /// `reason` says why; or why it isn't enough.
    NotExecuted
  };
  Outcome run();

  /// A wrong element of this result; none where no element is to blame, which
  /// `reason` explains.
  std::optional<unsigned> result;
  Difference difference;
  std::string reason;
  /// Where it can't be executed, or goes wrong, if that is one place: what a
  /// hook built doesn't outlive its execution.
  std::optional<Location> at;

  int64_t getNumOperations() const { return budget - session.budget; }
  /// On how many inputs the programs agreed.
  int64_t getNumInputs() const { return numInputs; }
  /// After a run: the values of arguments and parameters.
  SmallVector<std::pair<std::string, std::string>> printInputs();

  /// After a run: an element in which `op`, of a rank's program, differs from
  /// the value that the reference's op has there, with the placement for which
  /// fewest do; none where a placement explains it.
  std::optional<Difference> findDifference(Operation *op, unsigned program,
                                           Operation *ofReference);

private:
  /// Runs all on the inputs of `point`, and compares.
  Outcome runAt(exact::Interpretation::Mode mode, uint64_t point);
  /// The same, but for infinite inputs, on which programs that are equal may
  /// differ: (a + b) * inf is infinite where a * inf + b * inf is NaN. Such a
  /// difference is noted.
  Outcome runRealAt(uint64_t point);
  /// Runs all on inputs until nothing is left to be tried.
  Outcome runReal();
  /// Numbers that the inputs so far were compared with.
  void addBoundaries();
  /// A place whose boundary no inputs met; null where there is none.
  const exact::Site *findUntested();
  /// An op of which no input so far has run a region; null where there is none.
  Operation *findNotEntered();
  exact::Datum makeInput(StringRef name, RankedTensorType type,
                         bool isParameter);
  exact::Datum getBlockOf(const exact::Datum &whole, RankedTensorType type,
                          ShardingAttr sharding, int64_t rank);
  LogicalResult runReference();
  LogicalResult runPrograms();
  SmallVector<std::string> getInputs(Operation *op);
  bool narrow();
  Outcome stop();
  bool isDifferent(exact::Scalar found, exact::Scalar expected, Type element);
  /// The first element in which the ranks' values aren't the blocks.
  std::optional<Difference> compare(const exact::Datum &whole,
                                    ArrayRef<exact::Datum> blocks,
                                    ShardingAttr sharding, Type element,
                                    int64_t *numWrong = nullptr);

  func::FuncOp reference;
  ArrayRef<Program> programs;
  MeshOp mesh;
  int64_t budget;
  exact::Session session;
  bool isProven;
  exact::Inputs inputs;
  /// How many inputs are to be tried at least, and were.
  uint64_t minPoints = 1;
  int64_t numInputs = 0;
  /// Whether numbers differed too little to show it.
  bool areSomeClose = false;
  /// Whether they differed for infinite inputs.
  bool differForInfinite = false;
  SmallVector<exact::Datum> arguments;
  llvm::StringMap<exact::Datum> parameters;
  SmallVector<func::FuncOp> byRank;
  std::unique_ptr<exact::Machine> whole;
  std::vector<std::unique_ptr<exact::Machine>> machines;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_EXACTCHECK_H
