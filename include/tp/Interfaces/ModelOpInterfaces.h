//===- ModelOpInterfaces.h - Modules and parameters -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_MODELOPINTERFACES_H
#define TP_INTERFACES_MODELOPINTERFACES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OpDefinition.h"

#include "tp/Interfaces/ModelOpInterfaces.h.inc"

#endif // TP_INTERFACES_MODELOPINTERFACES_H
