//===- ExactCheck.h - Programs against a reference, by execution *- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the reference and all ranks' programs over exact numbers (Executor.h) on
// inputs that probe boundaries (ExactInputs.h), and compares the blocks.
//
// If nothing is compared or rounded, programs whose results agree compute the
// same function. The remaining probability of error is that two different
// polynomials, or unknown functions of them, agree at a random point of a field
// of 2^61 - 1 elements. If something is compared or rounded, the programs must
// also agree under the Free interpretation, and the inputs must have met the
// boundaries of the integers that are compared.
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
  /// `isProven`: the programs are proven, so the inputs needn't meet
  /// boundaries.
  ExactCheck(func::FuncOp reference, ArrayRef<Program> programs, MeshOp mesh,
             int64_t budget, bool isProven);

  enum class Outcome {
    Equal,
    /// `difference` says where.
    Different,
    /// `reason` says why the programs can't be executed, or why their execution
    /// isn't sufficient.
    NotExecuted
  };
  Outcome run();

  /// The result with a wrong element, and that element. If no element is to
  /// blame, `result` is nullopt and `reason` explains the difference.
  std::optional<unsigned> result;
  Difference difference;
  std::string reason;
  /// The location of the op that can't be executed or is wrong, if there is a
  /// single one. It isn't the op itself, because an op that was built for the
  /// execution doesn't outlive it.
  std::optional<Location> at;

  int64_t getNumOperations() const { return budget - session.budget; }
  /// The number of inputs on which the programs agreed.
  int64_t getNumInputs() const { return numInputs; }
  /// After a run: the values of arguments and parameters.
  SmallVector<std::pair<std::string, std::string>> printInputs();

  /// After a run: an element in which the result of `op`, of a rank's program,
  /// differs from that of the reference's op, under the placement with the
  /// fewest differences. nullopt if some placement has none.
  std::optional<Difference> findDifference(Operation *op,
                                           Operation *ofReference);

private:
  /// Runs the reference and the programs on the inputs of `point`, and compares
  /// the results.
  Outcome runAt(exact::Interpretation::Mode mode, uint64_t point);
  /// The same, but if inputs are infinite, a difference is only recorded: equal
  /// programs may differ on them. For example, (a + b) * inf may be infinite
  /// when a * inf + b * inf is NaN.
  Outcome runRealAt(uint64_t point);
  /// Runs one point after the other until nothing is left to try.
  Outcome runReal();
  /// Makes inputs try the offsets at which blocks of arguments and parameters
  /// begin.
  void addBlockBoundaries();
  /// Makes further inputs try the numbers that inputs were compared with so
  /// far.
  void addBoundaries();
  /// A site whose boundary no inputs met; null if there is none.
  const exact::Site *findUntested();
  /// An op with a region that no input has run so far; null if there is none.
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
  /// The least number of inputs to try, and the number on which results agreed.
  uint64_t minPoints = 1;
  int64_t numInputs = 0;
  /// Whether some numbers differed by no more than rounding errors.
  bool areSomeClose = false;
  /// Whether results differed for infinite inputs.
  bool differForInfinite = false;
  SmallVector<exact::Datum> arguments;
  llvm::StringMap<exact::Datum> parameters;
  SmallVector<func::FuncOp> byRank;
  std::unique_ptr<exact::Machine> whole;
  std::vector<std::unique_ptr<exact::Machine>> machines;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_EXACTCHECK_H
