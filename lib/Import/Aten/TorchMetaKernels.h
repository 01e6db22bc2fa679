//===- TorchMetaKernels.h - Shapes that LibTorch can't infer ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_TORCHMETAKERNELS_H
#define TP_LIB_IMPORT_ATEN_TORCHMETAKERNELS_H

namespace mlir::tp {

/// Registers meta kernels of PyTorch's ops that have none in C++: of those
/// that don't run on arbitrary data either, and of those that models run on
/// their largest tensors.
void addMetaKernels();

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHMETAKERNELS_H
