//===- Sums.h - Ops that add and subtract -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum is an op of two operands that, beside a Partial, count once
// (`ShardingRule::numOnce`): an addition if it is commutative, or else a
// difference.
//
//===----------------------------------------------------------------------===//

#ifndef TP_TRANSFORMS_SUMS_H
#define TP_TRANSFORMS_SUMS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::tp {

/// The type of a sum of values of the types `a` and `b`; either may be null.
RankedTensorType getSumType(RankedTensorType a, RankedTensorType b);

/// Zeros, by a constant of the dialect of `like`.
Value buildZero(OpBuilder &builder, Operation *like, RankedTensorType type);

/// The sum `like` of `a` and `b`, either of which may be null, for zero; its
/// type is `type`.
Value buildSum(OpBuilder &builder, Operation *like, Value a, Value b,
               RankedTensorType type);

/// Whether `buildTotal` can add values of `element` by `like`.
bool canTotal(Operation *like, Type element);

/// `whole` + `part`, by the addition that belongs to the sum `like`; its type is
/// `type`. A difference whose dialect names no addition takes `addend` away,
/// which is what `buildAddend` makes of `part`: 0 - `part` then, or else `part`
/// itself.
Value buildAddend(OpBuilder &builder, Operation *like, Value part);
Value buildTotal(OpBuilder &builder, Operation *like, Value whole, Value addend,
                 RankedTensorType type);

} // namespace mlir::tp

#endif // TP_TRANSFORMS_SUMS_H
