//===- ContractionShape.h - sums of products --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_CONTRACTIONSHAPE_H
#define TP_LIB_CODEGEN_LOOPS_CONTRACTIONSHAPE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::tp {

/// Whether `op` computes C[…] += A[…] * B[…], with one element type and indexed
/// by whole dimensions. At least one input must lack a dimension of the output,
/// so that its elements are used more than once.
bool isContraction(linalg::GenericOp op);

/// Makes `op`, a contraction of buffers of f16 or bf16 that stays a loop, add
/// up in a buffer of f32 and round once, as tprt.gemm does. Other contractions
/// stay as they are.
void widenContraction(linalg::GenericOp op);

/// Whether `op` yields its one input: a copy, transpose or broadcast.
bool isDataMovement(linalg::GenericOp op);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_CONTRACTIONSHAPE_H
