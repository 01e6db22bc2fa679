//===- NNToLinalg.h - nn ops as linalg ops ----------------------*- C++ -*-===//

#ifndef TP_CONVERSION_NNTOLINALG_H
#define TP_CONVERSION_NNTOLINALG_H

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::tp {

/// Replaces all nn ops under `root`, parameters and modules left out, by linalg
/// ops on tensors. The dialects that `convert-nn-to-linalg` depends on must be
/// loaded.
void convertNNToLinalg(Operation *root);

} // namespace mlir::tp

#endif // TP_CONVERSION_NNTOLINALG_H
