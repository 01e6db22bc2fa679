//===- PassBuffers.h - Buffers as operands of calls -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_PROGRAM_PASSBUFFERS_H
#define TP_LIB_CODEGEN_PROGRAM_PASSBUFFERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tp {

/// Lets the calls in `program` take the buffers of arguments that only calls
/// use, instead of tensors. Later passes then have few ops to visit for a call
/// that reads and updates many parameters.
void passBuffersToCalls(func::FuncOp program);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_PROGRAM_PASSBUFFERS_H
