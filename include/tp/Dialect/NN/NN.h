//===- NN.h - The nn dialect ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NN_H
#define TP_DIALECT_NN_NN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Traits.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/GradientOpInterface.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"

#include "tp/Dialect/NN/NNEnums.h.inc"

#include "tp/Dialect/NN/NNDialect.h.inc"

namespace mlir::nn {

/// Infers the type of a result whose shape is that of `operands`, broadcast as
/// in NumPy.
LogicalResult inferBroadcast(ValueRange operands, Type element,
                             SmallVectorImpl<Type> &types);

} // namespace mlir::nn

#define GET_OP_CLASSES
#include "tp/Dialect/NN/NNOps.h.inc"

#endif // TP_DIALECT_NN_NN_H
