//===- TorchModule.h - import a loaded TorchScript module -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHSCRIPT_TORCHMODULE_H
#define TP_LIB_IMPORT_TORCHSCRIPT_TORCHMODULE_H

#include "tp/Import/ForwardSignature.h"
#include "tp/Import/Importer.h"
#include <torch/csrc/jit/api/module.h>

namespace mlir::tp {

/// Imports a module that is loaded from `path`, or that messages call so.
/// `signatures` describe modules that were traced. Throws LibTorch's
/// exceptions, for example if memory runs out.
llvm::Expected<ImportedModel>
importTorchModule(MLIRContext *context, const torch::jit::Module &root,
                  llvm::StringRef path, llvm::ArrayRef<InputSpec> inputs,
                  llvm::raw_ostream &notes,
                  const ForwardSignatures &signatures);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHSCRIPT_TORCHMODULE_H
