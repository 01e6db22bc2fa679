//===- ModelOpInterfaces.h - Modules and parameters -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_MODELOPINTERFACES_H
#define TP_INTERFACES_MODELOPINTERFACES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OpDefinition.h"
#include "tp/Dialect/TP/TPEnums.h"

#include "tp/Interfaces/ModelOpInterfaces.h.inc"

namespace mlir::tp {

/// `op` as a parameter, or null. Parameters have no operands, and it takes
/// longer to look up an interface than to count operands.
inline ParameterOpInterface getParameter(Operation *op) {
  return op->getNumOperands() == 0 ? dyn_cast<ParameterOpInterface>(op)
                                   : ParameterOpInterface();
}

} // namespace mlir::tp

#endif // TP_INTERFACES_MODELOPINTERFACES_H
