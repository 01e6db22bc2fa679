//===- ComputeType.h - mixed precision --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_COMPUTETYPE_H
#define TP_LIB_TRAINING_COMPUTETYPE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::tp {

/// Lets `block` compute in `type` what it computes in f32 from parameters and
/// arguments, as PyTorch's FSDP does with MixedPrecisionPolicy(param_dtype):
/// parameters and float arguments are cast where they are read, and keep their
/// own type; what doesn't depend on any of them (positions, say) is cast where
/// both meet. The terminator's operands keep their types, and so does what is
/// computed from `target`, the loss; a null one is none.
void setComputeType(Block &block, FloatType type, Value target);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_COMPUTETYPE_H
