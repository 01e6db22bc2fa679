//===- NNLossPartition.cpp - Cross-entropy over split classes -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With m the maximum and s the sum of exp(x - m) over all classes, loss_i =
// log(s_i) + m_i - x[i, t_i]. If the classes are split, a rank has the maximum
// and the sum over its own classes, and x[i, t_i] if the target is one of them.
// One all-reduce gives m; a second one gives s, the target's logit and its
// weight. This follows PyTorch's loss_parallel, which takes three.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;

namespace {

/// Builds one rank's loss. Values over targets keep a class dimension of
/// size 1.
class ClassLossBuilder {
public:
  /// For `op` on logits of type `global`; targets that are `ignored` have no
  /// loss. Without `axes`, the classes aren't split.
  ClassLossBuilder(Operation *op, RankedTensorType global,
                   std::optional<int64_t> ignored, ImplicitLocOpBuilder &b,
                   ArrayRef<tp::AxisRefAttr> axes, FlatSymbolRefAttr mesh)
      : op(op), ignored(ignored), b(b),
        axes(tp::AxisListAttr::get(b.getContext(), axes)), mesh(mesh),
        classDim(global.getRank() == 1 ? 0 : 1),
        numClasses(global.getDimSize(classDim)) {}

  struct Sums {
    Value maximum;
    /// The sum of exponentials and the target's logit, both shifted by the
    /// maximum, and the target's weight if there are weights.
    SmallVector<Value> parts;
  };

  Sums buildSums(Value logits, Value target, Value weight) {
    element = elementOf(logits);
    SmallVector<int64_t> shape(shapeOf(logits));
    numLocal = shape[classDim];
    shape[classDim] = 1;
    perTarget = RankedTensorType::get(shape, element);
    index = ReshapeOp::create(b, perTarget.clone(elementOf(target)), target);

    Value maximum =
        allReduce(tp::ReductionKind::Max, reduce(b, ReduceKind::Max, logits,
                                                 {classDim}, /*keepdim=*/true));
    Value shifted = sub(b, logits, maximum);
    Value sum = reduce(b, ReduceKind::Sum, expr::exp(b, shifted), {classDim},
                       /*keepdim=*/true);
    SmallVector<Value> parts = {sum};
    if (axes.getAxes().empty()) {
      parts.push_back(pick(logits, index));
    } else {
      auto [mine, safe] = buildLookup();
      parts.push_back(keep(b, mine, pick(logits, safe)));
      if (weight)
        parts.push_back(keep(b, mine, pickWeight(weight, safe)));
      parts = allReduceTogether(parts);
    }
    parts[1] = sub(b, parts[1], maximum);
    return {maximum, parts};
  }

  Value build(Value logits, Value target, Value weight, LossReduction reduction,
              Type resultType) {
    // Small floats are summed in f32.
    Type result = elementOf(logits), wide = getWideElement(result);
    if (wide != result) {
      logits = castTo(b, logits, wide);
      weight = weight ? castTo(b, weight, wide) : weight;
    }
    SmallVector<Value> parts = buildSums(logits, target, weight).parts;
    Value loss = sub(b, unary<LogOp>(b, parts[0]), parts[1]);
    Value counted = isCounted();
    Value weights = keep(b, counted, weight ? parts[2] : repeat(1));
    loss = keep(b, counted, mul(b, loss, weights));
    return castTo(b, combine(loss, weights, reduction, resultType), result);
  }

private:
  /// `value` for each target.
  Value repeat(double value) {
    return BroadcastOp::create(b, perTarget, constant(b, element, value));
  }
  Value compareTo(ComparePredicate predicate, Value value, int64_t bound) {
    return compare(b, predicate, value, integer(b, elementOf(value), bound));
  }
  Value isCounted() { return compareTo(ComparePredicate::NE, index, *ignored); }

  /// Which targets are among this rank's classes, and for each target an index
  /// into these classes. The index is 0 if another rank has the target or if it
  /// is ignored. It is the target itself if no rank has it, so that the lookup
  /// reports it.
  std::pair<Value, Value> buildLookup() {
    Type type = elementOf(index);
    auto all = [&](Value x, Value y) { return binary<LogicalAndOp>(b, x, y); };
    Value first = castTo(
        b,
        tp::ShardOffsetOp::create(b, RankedTensorType::get({}, b.getI64Type()),
                                  b.getI64IntegerAttr(numClasses), mesh, axes),
        type);
    Value relative = sub(b, index, first);
    Value valid = all(compareTo(ComparePredicate::GE, index, 0),
                      compareTo(ComparePredicate::LT, index, numClasses));
    Value mine = all(compareTo(ComparePredicate::GE, relative, 0),
                     compareTo(ComparePredicate::LT, relative, numLocal));
    Value wrong = LogicalNotOp::create(b, valid);
    if (ignored) {
      Value counted = isCounted();
      mine = all(counted, mine);
      wrong = all(counted, wrong);
    }
    Value other = select(b, wrong, index, integer(b, type, 0));
    return {mine, select(b, mine, relative, other)};
  }

  Value pick(Value logits, Value index) {
    if (numLocal == 0)
      return repeat(0);
    auto picked = GatherOp::create(b, logits, index, classDim);
    picked->setAttr(tp::kIndexBoundAttr, b.getI64IntegerAttr(numClasses));
    return picked;
  }
  Value pickWeight(Value weight, Value index) {
    if (numLocal == 0)
      return repeat(0);
    auto flat =
        RankedTensorType::get({perTarget.getNumElements()}, elementOf(index));
    auto picked = IndexSelectOp::create(
        b, weight, ReshapeOp::create(b, flat, index), /*dim=*/0);
    picked->setAttr(tp::kIndexBoundAttr, b.getI64IntegerAttr(numClasses));
    return ReshapeOp::create(b, perTarget, picked);
  }

  Value allReduce(tp::ReductionKind kind, Value value) {
    if (axes.getAxes().empty())
      return value;
    auto fqn = op->getAttrOfType<StringAttr>(tp::kFqnAttr);
    return tp::AllReduceOp::create(
        b, value.getType(), value, kind, mesh, axes, fqn,
        b.getStringAttr("nn.cross_entropy over split classes"), IntegerAttr());
  }
  SmallVector<Value> allReduceTogether(ArrayRef<Value> parts) {
    Value sums =
        allReduce(tp::ReductionKind::Sum, ConcatOp::create(b, parts, classDim));
    SmallVector<Value> results;
    for (size_t i = 0; i < parts.size(); ++i)
      results.push_back(SliceOp::create(b, perTarget, sums, classDim, i, 1));
    return results;
  }

  /// Combines the losses of all targets by the op's reduction.
  Value combine(Value losses, Value weights, LossReduction reduction,
                Type resultType) {
    if (reduction == LossReduction::None)
      return ReshapeOp::create(
          b, cast<RankedTensorType>(resultType).clone(element), losses);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, perTarget.getRank()));
    auto sum = [&](Value value) {
      return reduce(b, ReduceKind::Sum, value, dims, /*keepdim=*/false);
    };
    if (reduction == LossReduction::Sum)
      return sum(losses);
    return div(b, sum(losses), sum(weights));
  }

  Operation *op;
  std::optional<int64_t> ignored;
  ImplicitLocOpBuilder &b;
  tp::AxisListAttr axes;
  FlatSymbolRefAttr mesh;
  int64_t classDim, numClasses;
  int64_t numLocal = 0;
  /// The targets, with a class dimension of size 1.
  Value index;
  Type element;
  RankedTensorType perTarget;
};

} // namespace

FailureOr<SmallVector<Value>>
CrossEntropyOp::partition(OpBuilder &builder, ValueRange operands,
                          TypeRange types, const tp::OpSplit &split) {
  tp::ShardingRule rule = getShardingRule();
  int64_t classDim = getInput().getType().getRank() == 1 ? 0 : 1;
  ArrayRef<tp::AxisRefAttr> axes =
      split.factorAxes[rule.operands[0][classDim][0]];
  if (axes.empty())
    return tp::clonePartitioned(*this, builder, operands, types);
  ImplicitLocOpBuilder b(getLoc(), builder);
  tp::MeshOp mesh = split.mesh;
  ClassLossBuilder loss(*this, getInput().getType(), getIgnoreIndex(), b, axes,
                        FlatSymbolRefAttr::get(mesh.getSymNameAttr()));
  return SmallVector<Value>{loss.build(
      operands[0], operands[1], operands.size() > 2 ? operands[2] : Value(),
      getReduction(), types[0])};
}

static SmallVector<Value> buildSums(ClassSumsOp op, OpBuilder &builder,
                                    Value input, Value target,
                                    ArrayRef<tp::AxisRefAttr> axes,
                                    FlatSymbolRefAttr mesh) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  ClassLossBuilder loss(op, op.getInput().getType(), std::nullopt, b, axes,
                        mesh);
  auto [maximum, parts] = loss.buildSums(input, target, Value());
  return {maximum, parts[0], parts[1]};
}

SmallVector<Value> ClassSumsOp::decompose(OpBuilder &builder) {
  return buildSums(*this, builder, getInput(), getTarget(), {}, {});
}

FailureOr<SmallVector<Value>> ClassSumsOp::partition(OpBuilder &builder,
                                                     ValueRange operands,
                                                     TypeRange types,
                                                     const tp::OpSplit &split) {
  unsigned classes = getShardingRule().operands[0][getClassDim()][0];
  tp::MeshOp mesh = split.mesh;
  return buildSums(*this, builder, operands[0], operands[1],
                   split.factorAxes[classes],
                   FlatSymbolRefAttr::get(mesh.getSymNameAttr()));
}
