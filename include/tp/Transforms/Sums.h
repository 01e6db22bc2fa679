//===- Sums.h - Ops that add and subtract -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum is an op of two operands; if one of them is Partial, the other counts
// on one rank (`ShardingRule::numOnce`). It is an addition if it is
// commutative, and a difference otherwise.
//
//===----------------------------------------------------------------------===//

#ifndef TP_TRANSFORMS_SUMS_H
#define TP_TRANSFORMS_SUMS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::tp {

class TensorBuilder;

/// The type of the sum of a value of type `a` and one of type `b`; either may
/// be null.
RankedTensorType getSumType(RankedTensorType a, RankedTensorType b);

/// A constant zero of `type`, made by the dialect of `like` if it can, else by
/// `tensors`.
Value buildZero(OpBuilder &builder, const TensorBuilder &tensors,
                Operation *like, RankedTensorType type);

/// Applies the sum `like` to `a` and `b`; the result's type is `type`. A null
/// operand stands for zero.
Value buildSum(OpBuilder &builder, const TensorBuilder &tensors,
               Operation *like, Value a, Value b, RankedTensorType type);

/// Whether `buildTotal` can add values of element type `element` for `like`.
bool canTotal(Operation *like, Type element);

/// Together these compute `whole` + `part`, of type `type`, with the addition
/// that belongs to the sum `like`: `buildAddend` turns `part` into the `addend`
/// of `buildTotal`. The addend is `part` itself, except where `like` is a
/// difference and no addition of its dialect is known: there it is 0 - `part`,
/// and `buildTotal` subtracts it.
Value buildAddend(OpBuilder &builder, const TensorBuilder &tensors,
                  Operation *like, Value part);
Value buildTotal(OpBuilder &builder, const TensorBuilder &tensors,
                 Operation *like, Value whole, Value addend,
                 RankedTensorType type);

} // namespace mlir::tp

#endif // TP_TRANSFORMS_SUMS_H
