//===- AxesFormat.h - The format of axes in ops -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_DIALECT_TP_AXESFORMAT_H
#define TP_LIB_DIALECT_TP_AXESFORMAT_H

#include "mlir/IR/OpImplementation.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// custom<Axes>: {dp, tp}
inline ParseResult parseAxes(OpAsmParser &parser, AxisListAttr &axes) {
  FailureOr<AxisListAttr> parsed = AxisListAttr::parseAxes(parser);
  if (failed(parsed))
    return failure();
  axes = *parsed;
  return success();
}

inline void printAxes(OpAsmPrinter &printer, Operation *, AxisListAttr axes) {
  axes.printAxes(printer.getStream());
}

} // namespace mlir::tp

#endif // TP_LIB_DIALECT_TP_AXESFORMAT_H
