//===- ShapeOpInterfaces.h - Ops that only move elements --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes read back of the ops that TensorBuilder builds, whichever dialect
// they belong to.
//
//===----------------------------------------------------------------------===//

#ifndef TP_INTERFACES_SHAPEOPINTERFACES_H
#define TP_INTERFACES_SHAPEOPINTERFACES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::tp {

/// Elements `start`, `start + 1`, … of dimension `dim`.
struct DimRange {
  int64_t dim, start;
};

} // namespace mlir::tp

#include "tp/Interfaces/ShapeOpInterfaces.h.inc"

#endif // TP_INTERFACES_SHAPEOPINTERFACES_H
