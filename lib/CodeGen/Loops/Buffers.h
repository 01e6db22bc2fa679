//===- Buffers.h - views and what they are views of -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_BUFFERS_H
#define TP_LIB_CODEGEN_LOOPS_BUFFERS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::tp {

/// Buffers start, and are counted, in multiples of this many bytes.
constexpr int64_t kBufferAlignment = 64;

/// The buffer that `value` is a view of: an argument, an allocation, a global.
inline Value getRootBuffer(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// Bytes of one element in memory; i1 takes one.
inline int64_t getElementBytes(Type element) {
  return element.isIndex()
             ? 8
             : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

/// Bytes of a dense buffer of static shape.
inline int64_t getBufferBytes(MemRefType type) {
  return type.getNumElements() * getElementBytes(type.getElementType());
}

/// The address of the first element of `buffer`, an LLVM pointer.
Value getPointer(OpBuilder &b, Value buffer);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_BUFFERS_H
