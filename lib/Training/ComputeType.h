//===- ComputeType.h - mixed precision --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_COMPUTETYPE_H
#define TP_LIB_TRAINING_COMPUTETYPE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::tp {

/// Lets `block` compute in `type` what it computes in f32 from parameters and
/// arguments, as PyTorch's FSDP does with MixedPrecisionPolicy(param_dtype).
/// Parameters and float arguments keep their own type and are cast where they
/// are read. Values that depend on none of them, such as positions, are cast
/// where they meet such a value. The terminator's operands keep their types,
/// and so do the values computed from `target`, the loss; `target` may be null.
void setComputeType(Block &block, FloatType type, Value target);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_COMPUTETYPE_H
