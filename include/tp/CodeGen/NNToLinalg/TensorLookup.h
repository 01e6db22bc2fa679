//===- TensorLookup.h - tensor.gather and tensor.scatter --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_NNTOLINALG_TENSORLOOKUP_H
#define TP_CODEGEN_NNTOLINALG_TENSORLOOKUP_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::tp {

/// Replaces the op by a linalg.generic that reads the source at its indices,
/// after a check that all of them are in range.
void lowerGather(RewriterBase &rewriter, tensor::GatherOp op);

/// Replaces the op by a linalg.generic over its result. Fails with an error if
/// the indices aren't constant.
LogicalResult lowerScatter(RewriterBase &rewriter, tensor::ScatterOp op);

} // namespace mlir::tp

#endif // TP_CODEGEN_NNTOLINALG_TENSORLOOKUP_H
