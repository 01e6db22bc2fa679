//===- NNCollectivePartition.cpp - Partition of softmax and norms ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Along the split dimension, these ops need only one or two reductions: softmax
// the maximum and the sum of exponentials, layer norm the sum and the sum of
// squares about the mean, RMS norm the sum of squares. Each rank reduces its
// own part, and an all-reduce combines the results.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;

namespace {

/// Builds one rank's part of a normalization of `value`, along `dims`, some of
/// which `axes` split.
class SplitNormalization {
public:
  SplitNormalization(Operation *op, OpBuilder &builder, Value value,
                     ArrayRef<int64_t> dims, ArrayRef<tp::AxisRefAttr> axes,
                     tp::MeshOp mesh)
      : op(op), b(op->getLoc(), builder), dims(dims),
        axes(tp::AxisListAttr::get(b.getContext(), axes)),
        mesh(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {
    // Small floats are reduced in f32.
    input = castTo(b, value, getWideElement(elementOf(value)));
  }

  Value buildSoftmax(bool isLog) {
    Value maximum =
        reduceOverAll(ReduceKind::Max, tp::ReductionKind::Max, input);
    Value shifted = sub(b, input, maximum);
    Value exps = expr::exp(b, shifted);
    Value sum = reduceOverAll(ReduceKind::Sum, tp::ReductionKind::Sum, exps);
    return isLog ? sub(b, shifted, unary<LogOp>(b, sum)) : div(b, exps, sum);
  }

  /// Normalizes groups of `count` elements, counted globally.
  Value buildNorm(bool center, int64_t count, double eps, Value weight,
                  Value bias) {
    Value value = input;
    if (center)
      value = sub(b, value, mean(value, count));
    Value squares = mul(b, value, value);
    Value scale = unary<RsqrtOp>(b, add(b, mean(squares, count), eps));
    value = mul(b, value, scale);
    if (weight)
      value = mul(b, value, castTo(b, weight, elementOf(value)));
    if (bias)
      value = add(b, value, castTo(b, bias, elementOf(value)));
    return value;
  }

  /// The result in the op's own element type.
  Value toResult(Value value, Type type) {
    return castTo(b, value, cast<RankedTensorType>(type).getElementType());
  }

private:
  Value mean(Value value, int64_t count) {
    Value sum = reduceOverAll(ReduceKind::Sum, tp::ReductionKind::Sum, value);
    return div(b, sum, constantLike(b, sum, static_cast<double>(count)));
  }
  Value reduceOverAll(ReduceKind kind, tp::ReductionKind over, Value value) {
    Value own = reduce(b, kind, value, dims, /*keepdim=*/true);
    auto fqn = op->getAttrOfType<StringAttr>(tp::kFqnAttr);
    return tp::AllReduceOp::create(
        b, own.getType(), own, over, mesh, axes, fqn,
        b.getStringAttr(op->getName().getStringRef() +
                        " over a split dimension"),
        IntegerAttr());
  }

  Operation *op;
  ImplicitLocOpBuilder b;
  SmallVector<int64_t> dims;
  tp::AxisListAttr axes;
  FlatSymbolRefAttr mesh;
  Value input;
};

/// The axes that split any of `dims` of operand 0.
SmallVector<tp::AxisRefAttr> getAxesAlong(const tp::ShardingRule &rule,
                                          const tp::OpSplit &split,
                                          ArrayRef<int64_t> dims) {
  SmallVector<tp::AxisRefAttr> axes;
  for (int64_t dim : dims)
    for (unsigned factor : rule.operands[0][dim])
      llvm::append_range(axes, split.factorAxes[factor]);
  return axes;
}

template <typename OpT>
FailureOr<SmallVector<Value>>
partitionSoftmax(OpT op, bool isLog, OpBuilder &builder, ValueRange operands,
                 TypeRange types, const tp::OpSplit &split) {
  int64_t dim = op.getDim();
  auto axes = getAxesAlong(op.getShardingRule(), split, dim);
  if (axes.empty())
    return tp::clonePartitioned(op, builder, operands, types);
  SplitNormalization part(op, builder, operands[0], dim, axes, split.mesh);
  return SmallVector<Value>{part.toResult(part.buildSoftmax(isLog), types[0])};
}

template <typename OpT>
FailureOr<SmallVector<Value>>
partitionNorm(OpT op, bool center, Value weight, Value bias, OpBuilder &builder,
              ValueRange operands, TypeRange types, const tp::OpSplit &split) {
  RankedTensorType global = op.getType();
  int64_t rank = global.getRank(), count = 1;
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(rank - op.getNormalized(), rank));
  for (int64_t dim : dims)
    count *= global.getDimSize(dim);
  auto axes = getAxesAlong(op.getShardingRule(), split, dims);
  if (axes.empty())
    return tp::clonePartitioned(op, builder, operands, types);
  SplitNormalization part(op, builder, operands[0], dims, axes, split.mesh);
  return SmallVector<Value>{
      part.toResult(part.buildNorm(center, count, op.getEps().convertToDouble(),
                                   weight, bias),
                    types[0])};
}

} // namespace

FailureOr<SmallVector<Value>> SoftmaxOp::partition(OpBuilder &builder,
                                                   ValueRange operands,
                                                   TypeRange types,
                                                   const tp::OpSplit &split) {
  return partitionSoftmax(*this, /*isLog=*/false, builder, operands, types,
                          split);
}

FailureOr<SmallVector<Value>>
LogSoftmaxOp::partition(OpBuilder &builder, ValueRange operands,
                        TypeRange types, const tp::OpSplit &split) {
  return partitionSoftmax(*this, /*isLog=*/true, builder, operands, types,
                          split);
}

FailureOr<SmallVector<Value>> LayerNormOp::partition(OpBuilder &builder,
                                                     ValueRange operands,
                                                     TypeRange types,
                                                     const tp::OpSplit &split) {
  unsigned next = 1;
  Value weight = getWeight() ? operands[next++] : Value();
  Value bias = getBias() ? operands[next] : Value();
  return partitionNorm(*this, /*center=*/true, weight, bias, builder, operands,
                       types, split);
}

FailureOr<SmallVector<Value>> RMSNormOp::partition(OpBuilder &builder,
                                                   ValueRange operands,
                                                   TypeRange types,
                                                   const tp::OpSplit &split) {
  return partitionNorm(*this, /*center=*/false,
                       getWeight() ? operands[1] : Value(), Value(), builder,
                       operands, types, split);
}
