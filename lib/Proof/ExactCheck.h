//===- ExactCheck.h - Programs against a reference, by execution *- C++ -*-===//
//
// Runs the reference and all ranks' programs over exact numbers (Executor.h) on
// hashed inputs and compares the blocks. Programs whose results agree compute
// the same function up to the probability that two different polynomials, or
// unknown functions of them, agree at a random point of a field of 2^61 - 1
// elements.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_EXACTCHECK_H
#define TP_LIB_PROOF_EXACTCHECK_H

#include "Executor.h"
#include "tp/Proof/Equivalence.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::tp {

class ExactCheck {
public:
  /// `budget`: scalar operations, of the reference and of all ranks together.
  ExactCheck(func::FuncOp reference, ArrayRef<Program> programs, MeshOp mesh,
             int64_t budget);

  enum class Outcome {
    Equal,
    /// `difference` says where.
    Different,
    /// `reason` says why.
    NotExecuted
  };
  Outcome run();

  /// A wrong element of this result; none where no element is to blame, which
  /// `reason` explains.
  std::optional<unsigned> result;
  Difference difference;
  std::string reason;
  /// Where it can't be executed, or goes wrong; may be null.
  Operation *at = nullptr;

  int64_t getNumOperations() const { return budget - session.budget; }

  /// After a run: an element in which `op`, of a rank's program, differs from
  /// the value that the reference's op has there, with the placement for which
  /// fewest do; none where a placement explains it.
  std::optional<Difference> findDifference(Operation *op, unsigned program,
                                           Operation *ofReference);

private:
  /// Which integers an input may have, such that indices are in range.
  struct Range {
    int64_t low = 0, bound = 1 << 20;
  };
  /// Runs all on the inputs of `point`, and compares.
  Outcome runAt(uint64_t point);
  /// An op of which no input so far has run a region; null where there is none.
  Operation *findNotEntered();
  exact::Datum makeInput(StringRef name, RankedTensorType type);
  exact::Datum getBlockOf(const exact::Datum &whole, RankedTensorType type,
                          ShardingAttr sharding, int64_t rank);
  LogicalResult runReference();
  LogicalResult runPrograms();
  bool narrow();
  Outcome stop();
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
  /// Which inputs are in use, and how many are to be tried at least.
  uint64_t point = 0, minPoints = 1;
  /// By the name of the input: an argument's, or a parameter's FQN.
  llvm::StringMap<Range> ranges;
  SmallVector<exact::Datum> arguments;
  llvm::StringMap<exact::Datum> parameters;
  SmallVector<func::FuncOp> byRank;
  std::unique_ptr<exact::Machine> whole;
  std::vector<std::unique_ptr<exact::Machine>> machines;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_EXACTCHECK_H
