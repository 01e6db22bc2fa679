//===- TorchScript.h - import a TorchScript archive -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_IMPORT_TORCHSCRIPT_H
#define TP_IMPORT_TORCHSCRIPT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tp/Import/ForwardSignature.h"
#include "tp/Import/InputSpec.h"
#include "tp/Import/SafetensorsWriter.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

namespace mlir::tp {

/// A model as MLIR, and the tensors that its `nn.parameter` ops name.
struct ImportedModel {
  OwningOpRef<ModuleOp> module;
  std::vector<WeightTensor> weights;
};

/// Imports the TorchScript archive at `path` (written by `torch.jit.save`, from
/// a scripted or traced module), specialised to the given inputs: a module with
/// one function `main`, whose body is the root `nn.module`. Shapes are static
/// and everything that depends on shapes alone is folded.
///
/// Modules are in the mode in which they were saved, or with `eval` all in
/// evaluation mode: this decides whether there is dropout in a scripted one.
///
/// `signatures` are of modules that were traced. Without one, a traced module
/// of several inputs is marked with `nn.traced`.
///
/// Inputs are matched to `forward`'s arguments by name; if none of the
/// names is an argument's, by position, with a note on `notes`.
///
/// The error is one text for the user: a file that is no TorchScript archive,
/// inputs that don't fit, shapes that don't fit, or the list of everything in
/// the model that isn't supported. Loads the nn, func and tp dialects.
llvm::Expected<ImportedModel>
importTorchScript(MLIRContext *context, llvm::StringRef path,
                  llvm::ArrayRef<InputSpec> inputs, llvm::raw_ostream &notes,
                  bool eval = false, const ForwardSignatures &signatures = {});

/// Prints the ops that can be imported and, for each, what is decided about
/// every argument of its overloads: honoured (or refused with a reason), seen
/// in the result's type, without effect on values, or only at its default.
void printOps(llvm::raw_ostream &os);

} // namespace mlir::tp

#endif // TP_IMPORT_TORCHSCRIPT_H
