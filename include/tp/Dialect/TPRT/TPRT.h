//===- TPRT.h - The tprt dialect --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TPRT_TPRT_H
#define TP_DIALECT_TPRT_TPRT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::tprt {

/// The status that a program returns.
struct StatusResource : SideEffects::Resource::Base<StatusResource> {
  StringRef getName() final { return "tprt.status"; }
};

/// UnitAttr on a function: it holds ops that a program repeats, and tprt.call
/// calls it.
constexpr StringLiteral kRepeatedAttr = "tprt.repeated";

} // namespace mlir::tprt

#include "tp/Dialect/TPRT/TPRTDialect.h.inc"

#include "tp/Dialect/TPRT/TPRTEnums.h.inc"

#include "tp/Dialect/TPRT/TPRTInterfaces.h.inc"

#define GET_OP_CLASSES
#include "tp/Dialect/TPRT/TPRTOps.h.inc"

#endif // TP_DIALECT_TPRT_TPRT_H
