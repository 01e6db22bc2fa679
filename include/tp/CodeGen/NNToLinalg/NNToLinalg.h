//===- NNToLinalg.h - nn ops as linalg ops ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_NNTOLINALG_NNTOLINALG_H
#define TP_CODEGEN_NNTOLINALG_NNTOLINALG_H

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::tp {

/// Replaces all nn ops under `root`, except parameters and modules, by linalg
/// ops on tensors. The dialects that `convert-nn-to-linalg` depends on must be
/// loaded. `onDevice`: the ops are to run on many threads at a time.
void convertNNToLinalg(Operation *root, bool onDevice = false);

} // namespace mlir::tp

#endif // TP_CODEGEN_NNTOLINALG_NNTOLINALG_H
