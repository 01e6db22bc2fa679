//===- TorchOps.h - run and emit one op of a program ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs PyTorch's ops for the importers: an op runs on meta tensors, and its
// handler builds the nn ops. The importer chooses the ops and their order.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_ATEN_TORCHOPS_H
#define TP_LIB_IMPORT_ATEN_TORCHOPS_H

#include "AtenCall.h"
#include "TorchTensors.h"
#include "llvm/ADT/SmallBitVector.h"
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <functional>

namespace c10 {
class OperatorHandle;
} // namespace c10

namespace mlir::tp {

/// A problem that prevents the import of a model.
struct ImportProblem {
  enum Kind {
    /// An op, or a form of it, that has no handler.
    UnsupportedOp,
    /// The model's behavior depends on the values in a tensor.
    DataDependent,
    /// PyTorch itself fails: shapes that don't fit, an exception.
    Failed,
  };
  Kind kind;
  std::string text;
  std::string fqn;
  std::string location;
  bool operator==(const ImportProblem &other) const = default;
};

/// One op of a program, without its inputs.
struct TorchOp {
  /// With its namespace: "aten::add".
  std::string name;
  /// Null for a few ops that only TorchScript's interpreter knows.
  const c10::FunctionSchema *schema = nullptr;
  /// Replaces the inputs on the stack by the results; empty if PyTorch doesn't
  /// know the op.
  std::function<void(c10::Stack &)> execute;
  /// Whether its result is random, for these inputs.
  bool isRandom = false;
  /// The inputs that are constants in the program's text, if any are.
  llvm::SmallBitVector literals;
  /// file:line in the model's source, or empty.
  std::string place;
};

/// Runs ops on meta tensors and builds their nn ops. It collects problems and
/// goes on, so that one run of a program finds all of them.
class OpRunner {
public:
  using Results = std::optional<std::vector<c10::IValue>>;

  OpRunner(ImportBuilder &b, TensorTable &table);

  /// The op's results; none if they are unknown because of a problem.
  Results run(const TorchOp &op, std::vector<c10::IValue> inputs);
  /// Reports the op if it has no handler; for an op whose inputs are unknown.
  void check(const TorchOp &op);

  /// Promises that the program writes no tensor in place, so that constants may
  /// share what they repeat (TorchRepeats.h).
  void promiseNoWrites() { mayShareRepeats = true; }

  void problem(ImportProblem::Kind kind, StringRef place,
               const llvm::Twine &text);
  llvm::ArrayRef<ImportProblem> getProblems() const { return problems; }

  /// Ops between these two belong to the module `fqn`.
  void enterModule(const std::string &fqn, Block *body);
  void leaveModule();
  const std::string &currentFqn() const { return fqns.back(); }

  /// Counts the elements of a list or string that the program has made, and
  /// reports a problem if they are too many.
  void countElements(int64_t count) { numElements += count; }
  bool hasRoom(StringRef place, double count);

private:
  bool viewAsCopy(const TorchOp &op, llvm::ArrayRef<c10::IValue> inputs,
                  c10::Stack &stack);
  bool runOnMeta(const TorchOp &op, c10::Stack &stack);
  Results runOnData(const TorchOp &op, c10::Stack stack);
  Results runUnsupported(const TorchOp &op, c10::Stack stack);
  Results runRandom(const TorchOp &op, c10::Stack stack);
  /// Runs the ops that a composite op consists of.
  Results runParts(const TorchOp &op, c10::Stack stack);
  void runPart(const TorchOp &whole, const c10::OperatorHandle &handle,
               c10::Stack &stack);
  bool areTracked(llvm::ArrayRef<c10::IValue> results);
  c10::Stack unwrapConstants(c10::Stack values);
  /// Whether the op needs no handler, or has one.
  bool isKnown(const c10::FunctionSchema &schema) const;
  enum class Emission {
    Done,
    Failed,
    /// The handler left the op to the ops that it consists of.
    Decomposed,
  };
  Emission emit(const TorchOp &op, llvm::ArrayRef<c10::IValue> inputs,
                llvm::ArrayRef<c10::IValue> outputs);
  /// Reports a problem and returns false.
  bool reportOpaque(const TorchOp &op);
  bool resolveTensors(const TorchOp &op, std::vector<c10::IValue> &inputs);
  void poison(llvm::ArrayRef<c10::IValue> outputs);

  ImportBuilder &b;
  TensorTable &table;
  AtenTable handlers;
  std::vector<std::string> fqns;
  std::vector<ImportProblem> problems;
  int64_t numElements = 0; ///< of large lists and strings
  bool mayShareRepeats = false;
  /// The composite op whose parts run, or empty, and how many have run.
  std::string composite;
  int64_t numParts = 0;
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHOPS_H
