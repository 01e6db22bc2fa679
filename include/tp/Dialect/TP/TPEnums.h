//===- TPEnums.h - tp enumerations ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPENUMS_H
#define TP_DIALECT_TP_TPENUMS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectImplementation.h"

#include "tp/Dialect/TP/TPEnums.h.inc"

#endif // TP_DIALECT_TP_TPENUMS_H
