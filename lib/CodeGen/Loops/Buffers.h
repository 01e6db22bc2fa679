//===- Buffers.h - Views and their buffers ----------------------*- C++ -*-===//
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

/// The buffers that the body of `op` uses without being operands of `op`, as a
/// look-up loads from its table.
SmallVector<Value> getCapturedBuffers(Operation *op);

/// Whether two views of one buffer are known to have no element in common.
bool areDisjoint(Value x, Value y);

/// The address of the first element of `buffer`, an LLVM pointer.
Value getPointer(OpBuilder &b, Value buffer);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_BUFFERS_H
