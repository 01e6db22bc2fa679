//===- TorchArchive.h - load a TorchScript archive --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHSCRIPT_TORCHARCHIVE_H
#define TP_LIB_IMPORT_TORCHSCRIPT_TORCHARCHIVE_H

#include "llvm/Support/Error.h"
#include <torch/csrc/jit/api/module.h>

namespace mlir::tp {

/// Whether the file is a TorchScript archive that can be unpacked.
bool isTorchArchive(llvm::StringRef path);

/// Loads the archive to the CPU, in the mode in which it was saved, or in
/// evaluation mode if `eval`. If the file is something else, the error says
/// what it looks like.
llvm::Expected<torch::jit::Module> loadTorchArchive(llvm::StringRef path,
                                                    bool eval);

/// LibTorch's message without its C++ backtrace, on one line.
std::string describeException(const std::exception &exception);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHSCRIPT_TORCHARCHIVE_H
