//===- NNCollectivePartition.cpp - softmax and norms over split dims ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Along the split dimension, these ops need only one or two reductions: softmax
// the maximum and the sum of exponentials, layer norm the sum and the sum of
// squares about the mean, RMS norm the sum of squares. Each rank reduces its
// own part, and an all-reduce combines the results.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::nn;

namespace {

/// Builds one rank's part of a normalisation of `value`, along `dims`, some of
/// which `axes` split.
class SplitNormalization {
public:
  SplitNormalization(Operation *op, OpBuilder &builder, Value value,
                     ArrayRef<int64_t> dims, ArrayRef<tp::AxisRefAttr> axes,
                     tp::MeshOp mesh)
      : op(op), b(op->getLoc(), builder), dims(dims),
        axes(tp::AxisListAttr::get(b.getContext(), axes)),
        mesh(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {
    auto given = cast<RankedTensorType>(value.getType());
    // Small floats are reduced in f32.
    Type element = given.getElementType();
    if (element.getIntOrFloatBitWidth() < 32)
      element = b.getF32Type();
    type = given.clone(element);
    SmallVector<int64_t> shape(given.getShape());
    for (int64_t dim : dims)
      shape[dim] = 1;
    reduced = RankedTensorType::get(shape, element);
    input = toElement(value, element);
  }

  Value buildSoftmax(bool isLog) {
    Value maximum =
        reduceOverAll(ReduceKind::Max, tp::ReductionKind::Max, input);
    Value shifted = SubOp::create(b, type, input, maximum);
    Value exps = ExpOp::create(b, type, shifted);
    Value sum = reduceOverAll(ReduceKind::Sum, tp::ReductionKind::Sum, exps);
    return isLog ? Value(SubOp::create(b, type, shifted,
                                       LogOp::create(b, reduced, sum)))
                 : Value(DivOp::create(b, type, exps, sum));
  }

  /// Normalises groups of `count` elements, counted globally.
  Value buildNorm(bool centre, int64_t count, double eps, Value weight,
                  Value bias) {
    Value value = input;
    if (centre)
      value = SubOp::create(b, type, value, mean(value, count));
    Value squares = MulOp::create(b, type, value, value);
    Value scale = RsqrtOp::create(
        b, reduced,
        AddOp::create(b, reduced, mean(squares, count), splat(eps)));
    value = MulOp::create(b, type, value, scale);
    Type element = type.getElementType();
    if (weight)
      value = MulOp::create(b, type, value, toElement(weight, element));
    if (bias)
      value = AddOp::create(b, type, value, toElement(bias, element));
    return value;
  }

  Value toElement(Value value, Type element) {
    auto from = cast<RankedTensorType>(value.getType());
    if (from.getElementType() == element)
      return value;
    return CastOp::create(b, from.clone(element), value);
  }

private:
  Value splat(double value) {
    auto scalar = RankedTensorType::get({}, type.getElementType());
    return ConstantOp::create(
        b, DenseElementsAttr::get(scalar, ArrayRef<Attribute>{b.getFloatAttr(
                                              type.getElementType(), value)}));
  }
  Value mean(Value value, int64_t count) {
    Value sum = reduceOverAll(ReduceKind::Sum, tp::ReductionKind::Sum, value);
    return DivOp::create(b, reduced, sum, splat(static_cast<double>(count)));
  }
  Value reduceOverAll(ReduceKind kind, tp::ReductionKind over, Value value) {
    Value own =
        ReduceOp::create(b, reduced, kind, value, dims, /*keepdim=*/true);
    auto fqn = op->getAttrOfType<StringAttr>(tp::kFqnAttr);
    return tp::AllReduceOp::create(
        b, reduced, own, over, mesh, axes, fqn,
        b.getStringAttr(op->getName().getStringRef() +
                        " over a split dimension"),
        IntegerAttr());
  }

  Operation *op;
  ImplicitLocOpBuilder b;
  SmallVector<int64_t> dims;
  tp::AxisListAttr axes;
  FlatSymbolRefAttr mesh;
  RankedTensorType type, reduced;
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
  return SmallVector<Value>{
      part.toElement(part.buildSoftmax(isLog),
                     cast<RankedTensorType>(types[0]).getElementType())};
}

template <typename OpT>
FailureOr<SmallVector<Value>>
partitionNorm(OpT op, bool centre, Value weight, Value bias, OpBuilder &builder,
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
  return SmallVector<Value>{part.toElement(
      part.buildNorm(centre, count, op.getEps().convertToDouble(), weight,
                     bias),
      cast<RankedTensorType>(types[0]).getElementType())};
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
  return partitionNorm(*this, /*centre=*/true, weight, bias, builder, operands,
                       types, split);
}

FailureOr<SmallVector<Value>> RMSNormOp::partition(OpBuilder &builder,
                                                   ValueRange operands,
                                                   TypeRange types,
                                                   const tp::OpSplit &split) {
  return partitionNorm(*this, /*centre=*/false,
                       getWeight() ? operands[1] : Value(), Value(), builder,
                       operands, types, split);
}
