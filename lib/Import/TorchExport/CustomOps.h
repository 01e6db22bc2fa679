//===- CustomOps.h - ops of other libraries ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHEXPORT_CUSTOMOPS_H
#define TP_LIB_IMPORT_TORCHEXPORT_CUSTOMOPS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::tp {

/// Declares the ops of a Python library that can be imported to PyTorch: their
/// schemas, and the shapes of their results. In a process with Python, the
/// library itself may have declared them. Returns whether there are any.
bool declareCustomOps(llvm::StringRef library);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_CUSTOMOPS_H
