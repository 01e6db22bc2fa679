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
/// a scripted or traced module), specialised to the given inputs. The result is
/// a module with one function `main`, whose body is the root `nn.module`.
/// Shapes are static, and everything that depends on shapes alone is folded.
///
/// Modules keep the mode in which they were saved, unless `eval` puts them all
/// in evaluation mode. The mode decides whether a scripted module has dropout.
///
/// `signatures` describe modules that were traced. A traced module with several
/// inputs and no signature is marked with `nn.traced`.
///
/// Inputs are matched to `forward`'s arguments by name. If no name matches,
/// they are matched by position, with a note on `notes`.
///
/// The error is one text for the user: the file isn't a TorchScript archive,
/// inputs or shapes don't fit, or a list of everything in the model that isn't
/// supported. Loads the nn, func and tp dialects.
llvm::Expected<ImportedModel>
importTorchScript(MLIRContext *context, llvm::StringRef path,
                  llvm::ArrayRef<InputSpec> inputs, llvm::raw_ostream &notes,
                  bool eval = false, const ForwardSignatures &signatures = {});

/// Prints the ops that can be imported and, for each, how every argument of its
/// overloads is treated: honoured (or refused with a reason), reflected in the
/// result's type, without effect on values, or accepted only at its default.
void printOps(llvm::raw_ostream &os);

} // namespace mlir::tp

#endif // TP_IMPORT_TORCHSCRIPT_H
