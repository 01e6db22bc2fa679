//===- TPTypes.cpp - Values of started collectives ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "tp/Dialect/TP/TP.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tp;

#define GET_TYPEDEF_CLASSES
#include "tp/Dialect/TP/TPTypes.cpp.inc"

void TPDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "tp/Dialect/TP/TPTypes.cpp.inc"
      >();
}
