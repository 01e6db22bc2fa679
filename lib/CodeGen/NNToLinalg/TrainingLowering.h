//===- TrainingLowering.h - Ops of training steps ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_NNTOLINALG_TRAININGLOWERING_H
#define TP_LIB_CODEGEN_NNTOLINALG_TRAININGLOWERING_H

#include "mlir/IR/Value.h"

namespace mlir::tp::nnlinalg {

/// Whether the code of an op hardly takes longer if this operand, a constant, is
/// known at run time only. That is so for the stream of random numbers; other
/// lowerings look at constants, such as exponents and indices.
bool isCheapAtRunTime(OpOperand &operand);

} // namespace mlir::tp::nnlinalg

#endif // TP_LIB_CODEGEN_NNTOLINALG_TRAININGLOWERING_H
