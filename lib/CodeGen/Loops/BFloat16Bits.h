//===- BFloat16Bits.h - bf16 as integers in the LLVM dialect ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_BFLOAT16BITS_H
#define TP_LIB_CODEGEN_LOOPS_BFLOAT16BITS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::tp {

/// Replaces bf16 by i16 in all functions and globals of `module`, which are in
/// the LLVM dialect and only move numbers of bf16: arithmetic has become that
/// of f32 and of integers. For a CPU without instructions for bf16, LLVM would
/// pass a bf16 argument by a call of `__truncsfbf2`, which libgcc has from
/// version 13 on.
void replaceBFloat16ByBits(ModuleOp module);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_BFLOAT16BITS_H
