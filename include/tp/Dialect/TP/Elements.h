//===- Elements.h - The size of tensors' elements ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_ELEMENTS_H
#define TP_DIALECT_TP_ELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::tp {

/// Bytes of one element in memory; an index is an i64 there.
inline int64_t getElementBytes(Type element) {
  return element.isIndex()
             ? 8
             : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

inline int64_t getTensorBytes(RankedTensorType type) {
  return type.getNumElements() * getElementBytes(type.getElementType());
}

} // namespace mlir::tp

#endif // TP_DIALECT_TP_ELEMENTS_H
