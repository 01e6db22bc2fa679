//===- AtenReduction.h - operands and results of reductions -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_ATENREDUCTION_H
#define TP_LIB_IMPORT_ATEN_ATENREDUCTION_H

#include "AtenCall.h"

namespace mlir::tp {

/// Sets the result of a reduction, in the op's own result shape: PyTorch also
/// reduces a scalar along "dimension 0".
inline LogicalResult reduced(AtenCall &call, ImportBuilder &b, Value v,
                             unsigned i = 0) {
  v = nn::expr::castTo(b, v, call.resultElement(i));
  call.setResult(i, b.reshape(v, call.resultShape(i)));
  return success();
}

inline llvm::SmallVector<int64_t> dimsOf(AtenCall &call, Value v) {
  if (nn::expr::rankOf(v) == 0)
    return {};
  return call.dims("dim", nn::expr::rankOf(v));
}

/// The operand of a reduction: `self` in the result's type, or in f32 for small
/// floats. If a part of a sum were rounded before it is reduced over ranks, it
/// could overflow although the sum doesn't.
inline Value wideSelf(AtenCall &call, ImportBuilder &b) {
  return b.widen(
      nn::expr::castTo(b, call.tensor("self"), call.resultElement()));
}

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_ATENREDUCTION_H
