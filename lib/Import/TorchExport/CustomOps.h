//===- CustomOps.h - ops of other libraries ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHEXPORT_CUSTOMOPS_H
#define TP_LIB_IMPORT_TORCHEXPORT_CUSTOMOPS_H

namespace mlir::tp {

/// Declares the ops of Python libraries that can be imported to PyTorch: their
/// schemas, and the shapes of their results.
void declareCustomOps();

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_CUSTOMOPS_H
