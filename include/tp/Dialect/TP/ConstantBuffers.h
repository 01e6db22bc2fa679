//===- ConstantBuffers.h - Buffers that are constants -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_CONSTANTBUFFERS_H
#define TP_DIALECT_TP_CONSTANTBUFFERS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::tp {

/// On a module: the FQNs of the buffers that are constants in it. Other
/// programs of an artifact can't update them.
constexpr StringLiteral kConstantsAttr = "tp.constants";

} // namespace mlir::tp

#endif // TP_DIALECT_TP_CONSTANTBUFFERS_H
