//===- Elements.h - Sizes of elements and tensors in memory -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_ELEMENTS_H
#define TP_DIALECT_TP_ELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::tp {

/// The largest number of elements of a tensor. It keeps numbers of bytes,
/// summed over ranks, within 64 bits.
constexpr int64_t kMaxTensorElements = int64_t(1) << 40;

/// Bytes of one element in memory. An i1 takes one; an index is an i64.
inline int64_t getElementBytes(Type element) {
  return element.isIndex()
             ? 8
             : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

/// Bytes of a dense tensor or buffer of static shape.
inline int64_t getTensorBytes(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.getNumElements() * getElementBytes(shaped.getElementType());
}

} // namespace mlir::tp

#endif // TP_DIALECT_TP_ELEMENTS_H
