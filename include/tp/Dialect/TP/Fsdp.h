//===- Fsdp.h - Fully sharded parameters ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes that say what FSDP (PyTorch's fully_shard) does with a parameter
// over mesh dimensions that split the batch.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_FSDP_H
#define TP_DIALECT_TP_FSDP_H

#include "mlir/Support/LLVM.h"

namespace mlir::tp {

/// On nn.parameter, a string: its group. Parameters that FSDP gathers and
/// reduces together have the same string, the FQN of the module that
/// fully_shard would be called on.
constexpr StringLiteral kFsdpGroupAttr = "tp.fsdp_group";

/// On nn.recompute, an i64: the pass over the model in which it reads. The
/// forward and backward passes of the step's batch k are 2k and 2k + 1.
constexpr StringLiteral kPassAttr = "tp.pass";

/// On nn.parameter: it is a buffer, which FSDP doesn't split.
constexpr StringLiteral kBufferAttr = "tp.buffer";

} // namespace mlir::tp

#endif // TP_DIALECT_TP_FSDP_H
