//===- ModelBuilder.h - the function of an imported model -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_MODELBUILDER_H
#define TP_LIB_IMPORT_ATEN_MODELBUILDER_H

#include "TorchOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Import/Importer.h"

namespace mlir::tp {

/// One of forward's arguments, for ModelBuilder::matchInputs.
struct ForwardArgument {
  std::string name;
  /// Whether it may be left out.
  bool isOptional = false;
};

/// Builds the function `main` of a model, and what runs the model's ops in it.
/// `path` is the file, or what messages call the model.
class ModelBuilder {
public:
  ImportBuilder b;
  TensorTable table;
  OpRunner ops;
  /// Buffers of no state_dict that other programs write.
  std::vector<std::string> states;

  ModelBuilder(MLIRContext *context, StringRef path, llvm::raw_ostream &notes);

  llvm::Error error(const llvm::Twine &why) {
    return llvm::createStringError("cannot import '" + path + "': " + why);
  }
  llvm::raw_ostream &note() { return notes << "note: "; }

  /// For each argument the input that is given for it, by name or else by
  /// position; null for an optional one without an input.
  llvm::Expected<llvm::SmallVector<const InputSpec *>>
  matchInputs(llvm::ArrayRef<ForwardArgument> arguments,
              llvm::ArrayRef<InputSpec> inputs);

  /// Notes that calls of the model change this input, as the function can't.
  void noteWrittenInput(StringRef name);

  /// Adds an argument to the function; returns the meta tensor for it.
  at::Tensor addInput(StringRef name, RankedTensorType type);

  /// Returns `result` from the function, and completes the model. Fails with
  /// the problems of `ops` if there are any.
  llvm::Expected<ImportedModel>
  finish(const std::optional<c10::IValue> &result);

private:
  llvm::Error collectOutputs(const c10::IValue &value, const std::string &name);
  llvm::Error report(llvm::ArrayRef<ImportProblem> problems);
  llvm::Error describeConstantBuffers();

  MLIRContext *context;
  std::string path;
  llvm::raw_ostream &notes;
  OwningOpRef<ModuleOp> module;
  OwningOpRef<func::FuncOp> function;
  llvm::SmallVector<std::string> inputNames, outputNames;
  std::vector<at::Tensor> inputs;
  llvm::SmallVector<Value> outputs;
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_MODELBUILDER_H
