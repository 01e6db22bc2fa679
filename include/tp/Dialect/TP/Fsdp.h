//===- Fsdp.h - Fully sharded parameters ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What FSDP, PyTorch's fully_shard, does with a parameter over mesh dimensions
// that split the batch, as attributes.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_FSDP_H
#define TP_DIALECT_TP_FSDP_H

#include "mlir/Support/LLVM.h"

namespace mlir::tp {

/// On nn.parameter, a string: what FSDP gathers, and reduces, with it has the
/// same; the FQN of the module that fully_shard would be called on.
constexpr StringLiteral kFsdpGroupAttr = "tp.fsdp_group";

/// On nn.recompute, an i64: in which pass over the model it reads. Forward and
/// backward pass of the step's batch k are 2k and 2k + 1.
constexpr StringLiteral kPassAttr = "tp.pass";

/// On nn.parameter: it is a buffer, and none of those that FSDP splits.
constexpr StringLiteral kBufferAttr = "tp.buffer";

} // namespace mlir::tp

#endif // TP_DIALECT_TP_FSDP_H
