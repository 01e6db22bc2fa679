//===- TensorBuilder.h - Ops in the dialect of a program --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rewrite of collectives needs reshapes, slices and the like around them.
// They are built in the dialect of the program:
//
//   - If an op of the program belongs to a dialect that implements
//     TensorBuilderInterface, the first such dialect builds them.
//   - Otherwise they are upstream ops, of `tensor`, `linalg` and `arith`.
//
// The program is the module around the op that is rewritten, so that all ranks'
// programs get the same ops.
//
//===----------------------------------------------------------------------===//

#ifndef TP_INTERFACES_TENSORBUILDER_H
#define TP_INTERFACES_TENSORBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectInterface.h"

namespace mlir::tp {

/// `type` with `size` elements along `dim`.
RankedTensorType resize(RankedTensorType type, int64_t dim, int64_t size);

/// Builds ops on tensors of static shape. An op that would change nothing isn't
/// built: the method returns its operand. The base class builds upstream ops,
/// whose dialects must be loaded.
class TensorBuilder {
public:
  /// The builder for the program that `op` belongs to.
  static const TensorBuilder &get(Operation *op);
  /// The builder of upstream ops.
  static const TensorBuilder &getUpstream();

  virtual ~TensorBuilder() = default;

  /// The elements of `value`, in row-major order, in another shape.
  Value reshape(OpBuilder &b, Location loc, Value value,
                ArrayRef<int64_t> shape) const;
  /// Dimension i of the result is dimension `permutation[i]` of `value`.
  Value transpose(OpBuilder &b, Location loc, Value value,
                  ArrayRef<int64_t> permutation) const;
  /// `size` elements of dimension `dim`, from `start` on.
  Value slice(OpBuilder &b, Location loc, Value value, int64_t dim,
              int64_t start, int64_t size) const;
  /// `values`, at least one, side by side along `dim`.
  Value concat(OpBuilder &b, Location loc, ArrayRef<Value> values,
               int64_t dim) const;
  /// `value` repeated along dimensions, which are aligned at the right: missing
  /// ones, and those of size 1.
  Value broadcast(OpBuilder &b, Location loc, Value value,
                  RankedTensorType type) const;
  /// The sum of two values that broadcast to `type`, element by element.
  virtual Value add(OpBuilder &b, Location loc, Value lhs, Value rhs,
                    RankedTensorType type) const;
  virtual Value constant(OpBuilder &b, Location loc, ElementsAttr value) const;

protected:
  virtual Value createReshape(OpBuilder &b, Location loc, RankedTensorType type,
                              Value value) const;
  virtual Value createTranspose(OpBuilder &b, Location loc,
                                RankedTensorType type, Value value,
                                ArrayRef<int64_t> permutation) const;
  virtual Value createSlice(OpBuilder &b, Location loc, RankedTensorType type,
                            Value value, int64_t dim, int64_t start) const;
  virtual Value createConcat(OpBuilder &b, Location loc, RankedTensorType type,
                             ArrayRef<Value> values, int64_t dim) const;
  virtual Value createBroadcast(OpBuilder &b, Location loc,
                                RankedTensorType type, Value value) const;
};

/// Implemented by a dialect in which models are written.
class TensorBuilderInterface
    : public DialectInterface::Base<TensorBuilderInterface>,
      public TensorBuilder {
public:
  TensorBuilderInterface(Dialect *dialect) : Base(dialect) {}
};

} // namespace mlir::tp

#endif // TP_INTERFACES_TENSORBUILDER_H
