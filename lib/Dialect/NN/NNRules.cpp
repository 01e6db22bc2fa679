//===- NNRules.cpp - Rules without einsum form, partition hooks -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Blocks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::nn;
using tp::DimFactors;
using tp::FactorKind;
using tp::LinearSet;
using tp::OpSplit;
using tp::ReductionKind;
using tp::ShardingRule;
using tp::TensorFactors;

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

ShardingRule ConstantOp::getSplatRule() {
  auto dense = dyn_cast<DenseElementsAttr>(getValue());
  return dense && dense.isSplat() ? ShardingRule::elementwise(*this)
                                  : ShardingRule::replicated(*this);
}

/// With an offset added, integers stay exact. Floats must be rounded only once,
/// so `dim` stays whole.
ShardingRule IotaOp::getIotaRule() {
  ShardingRule rule = ShardingRule::elementwise(*this);
  if (!getType().getElementType().isInteger())
    rule.wholeResultDim(getDim());
  return rule;
}

/// A cast is linear if it doesn't round: rounding would depend on the global
/// sum.
ShardingRule CastOp::getCastRule() {
  ShardingRule rule = ShardingRule::elementwise(*this);
  auto from = dyn_cast<FloatType>(getInput().getType().getElementType());
  auto to = dyn_cast<FloatType>(getType().getElementType());
  if (from && to && to.getFPMantissaWidth() >= from.getFPMantissaWidth() &&
      to.getWidth() > from.getWidth())
    rule.linear({LinearSet{0}});
  return rule;
}

template <typename OpT>
static ShardingRule getTrailingNormRule(OpT op, int64_t reductions) {
  ShardingRule rule = ShardingRule::elementwise(op);
  int64_t rank = op.getType().getRank();
  for (int64_t dim = rank - op.getNormalized(); dim < rank; ++dim)
    rule.collectiveResultDim(dim, reductions);
  return rule;
}

ShardingRule LayerNormOp::getNormRule() {
  return getTrailingNormRule(*this, 2);
}
ShardingRule RMSNormOp::getNormRule() { return getTrailingNormRule(*this, 1); }

/// The operand has one factor per dimension; `dropped` are the reduced
/// dimensions.
static ShardingRule getReductionRule(Operation *op, ArrayRef<int64_t> dropped,
                                     bool keepdim, FactorKind kind,
                                     ReductionKind reduction) {
  ShardingRule rule;
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  TensorFactors operand, result;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    unsigned factor = rule.factors.size();
    bool drop = llvm::is_contained(dropped, dim);
    rule.factors.push_back(
        {type.getDimSize(dim), drop ? kind : FactorKind::Parallel, reduction});
    operand.push_back({factor});
    if (!drop)
      result.push_back({factor});
    else if (keepdim)
      result.emplace_back();
  }
  rule.operands.push_back(operand);
  rule.results.push_back(result);
  return rule;
}

ShardingRule ReduceOp::getReduceRule() {
  ReductionKind kind = ReductionKind::Sum;
  switch (getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    break;
  case ReduceKind::Max:
    kind = ReductionKind::Max;
    break;
  case ReduceKind::Min:
    kind = ReductionKind::Min;
    break;
  case ReduceKind::Product:
    kind = ReductionKind::Product;
    break;
  }
  // An integer mean truncates, so it needs the global sum.
  bool truncates = getKind() == ReduceKind::Mean &&
                   !isa<FloatType>(getType().getElementType());
  ShardingRule rule = getReductionRule(
      *this, getDims(), getKeepdim(),
      truncates ? FactorKind::Whole : FactorKind::Reduction, kind);
  if (getKind() == ReduceKind::Sum ||
      (getKind() == ReduceKind::Mean && !truncates))
    rule.linear({LinearSet{0}});
  return rule;
}

ShardingRule ArgMaxOp::getArgMaxRule() {
  return getReductionRule(*this, {static_cast<int64_t>(getDim())}, getKeepdim(),
                          FactorKind::Whole, ReductionKind::Max);
}

ShardingRule TransposeOp::getTransposeRule() {
  ShardingRule rule;
  TensorFactors operand(getInput().getType().getRank()), result;
  for (auto [dim, from] : llvm::enumerate(getPermutation())) {
    unsigned factor = rule.factors.size();
    rule.factors.push_back({getType().getDimSize(dim)});
    operand[from].push_back(factor);
    result.push_back({factor});
  }
  rule.operands.push_back(operand);
  rule.results.push_back(result);
  return rule.linear({LinearSet{0}});
}

/// One factor per dimension on both sides, except for `dim`, which has no
/// factor and must therefore be whole.
static ShardingRule getAllButRule(Operation *op, int64_t dim) {
  ShardingRule rule;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  TensorFactors dims(type.getRank());
  for (int64_t d = 0; d < type.getRank(); ++d) {
    if (d == dim)
      continue;
    dims[d].push_back(rule.factors.size());
    rule.factors.push_back({type.getDimSize(d)});
  }
  rule.operands.assign(op->getNumOperands(), dims);
  rule.results.push_back(dims);
  return rule;
}

/// The result is a window on the sliced dimension.
ShardingRule SliceOp::getSliceRule() {
  ShardingRule rule = getAllButRule(*this, getDim());
  rule.linear({LinearSet{0}});
  if (getStep() != 1)
    return rule;
  unsigned along = rule.factors.size(), dim = getDim();
  rule.factors.push_back({getInput().getType().getDimSize(dim)});
  rule.operands[0][dim].push_back(along);
  rule.results[0][dim].push_back(along);
  rule.windows.push_back({/*isResult=*/true, 0, dim,
                          static_cast<int64_t>(getStart()),
                          getType().getDimSize(dim)});
  return rule;
}

/// The source is a window on the dimension that is written.
ShardingRule SliceScatterOp::getSliceScatterRule() {
  ShardingRule rule = getAllButRule(*this, getDim());
  rule.linear({LinearSet{0, 1}});
  if (getStep() != 1)
    return rule;
  unsigned along = rule.factors.size(), dim = getDim();
  rule.factors.push_back({getType().getDimSize(dim)});
  rule.operands[0][dim].push_back(along);
  rule.results[0][dim].push_back(along);
  int64_t size = getSource().getType().getDimSize(dim);
  if (size == 0) // nothing is written
    return rule;
  rule.operands[1][dim].push_back(along);
  rule.windows.push_back(
      {/*isResult=*/false, 1, dim, static_cast<int64_t>(getStart()), size});
  return rule;
}

/// The operands are adjacent windows on the result's dimension.
ShardingRule ConcatOp::getConcatRule() {
  ShardingRule rule = getAllButRule(*this, getDim());
  LinearSet all = llvm::to_vector<2>(llvm::seq<unsigned>(0, getNumOperands()));
  rule.linear({all});
  unsigned along = rule.factors.size(), dim = getDim();
  rule.factors.push_back({getType().getDimSize(dim)});
  rule.results[0][dim].push_back(along);
  int64_t start = 0;
  for (auto [index, operand] : llvm::enumerate(getOperands())) {
    int64_t size = cast<RankedTensorType>(operand.getType()).getDimSize(dim);
    rule.operands[index][dim].push_back(along);
    rule.windows.push_back(
        {/*isResult=*/false, static_cast<unsigned>(index), dim, start, size});
    start += size;
  }
  return rule;
}

ShardingRule GatherOp::getGatherRule() {
  ShardingRule rule = getAllButRule(*this, getDim());
  auto input = getInput().getType();
  // If the index is smaller than the input, positions don't correspond.
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (input.getDimSize(dim) != getType().getDimSize(dim))
      rule.wholeResultDim(dim);
  // Along the gathered dimension, index and result do correspond. Each element
  // comes from one position of the input's dimension, so it is a sum in which
  // all other ranks' terms are zero.
  unsigned along = rule.factors.size(), from = along + 1;
  rule.factors.push_back({getType().getDimSize(getDim())});
  rule.factors.push_back(
      {input.getDimSize(getDim()), input.getElementType().isInteger(1)
                                       ? FactorKind::Whole
                                       : FactorKind::Reduction});
  rule.operands[0][getDim()].push_back(from);
  rule.operands[1][getDim()].push_back(along);
  rule.results[0][getDim()].push_back(along);
  return rule.linear({LinearSet{0}});
}

ShardingRule IndexSelectOp::getIndexSelectRule() {
  ShardingRule rule = getAllButRule(*this, getDim());
  unsigned along = rule.factors.size();
  rule.factors.push_back({getType().getDimSize(getDim())});
  rule.operands[1] = {{along}};
  rule.results[0][getDim()].push_back(along);
  return rule.linear({LinearSet{0}});
}

ShardingRule SortOp::getSortRule() {
  ShardingRule rule = getAllButRule(*this, getDim());
  rule.results.push_back(rule.results.front());
  return rule;
}

/// Copies and sums are linear in input and source together, and in the source if
/// the input is zero.
ShardingRule ScatterOp::getScatterRule() {
  ShardingRule rule = getAllButRule(*this, getDim());
  auto source = getSource().getType();
  if (namesSlices())
    rule.operands[1] = {{}};
  else
    // If the source is smaller than the input, positions don't correspond.
    for (int64_t dim = 0; dim < source.getRank(); ++dim)
      if (dim != static_cast<int64_t>(getDim()) &&
          source.getDimSize(dim) != getType().getDimSize(dim))
        rule.wholeResultDim(dim);
  bool isLinear =
      getKind() == ScatterKind::Copy || getKind() == ScatterKind::Add;
  if (isLinear)
    rule.linear({LinearSet{0, 2}});
  if (isLinear && (matchPattern(getInput(), m_Zero()) ||
                   matchPattern(getInput(), m_AnyZeroFloat())))
    rule.linear({LinearSet{2}});
  return rule;
}

/// input (n, c, d…), target (n, d…), weight (c); `classKind` is the kind of the
/// class dimension. Only `none` and `sum` can split the other dimensions,
/// because `mean` counts targets globally.
template <typename OpT>
static ShardingRule getClassLossRule(OpT op, FactorKind classKind) {
  ShardingRule rule;
  auto input = op.getInput().getType();
  TensorFactors inputDims(input.getRank()), targetDims;
  int64_t classDim = input.getRank() == 1 ? 0 : 1;
  FactorKind kind =
      op.getReduction() == LossReduction::None  ? FactorKind::Parallel
      : op.getReduction() == LossReduction::Sum ? FactorKind::Reduction
                                                : FactorKind::Whole;
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    unsigned factor = rule.factors.size();
    rule.factors.push_back(
        {input.getDimSize(dim), dim == classDim ? classKind : kind});
    inputDims[dim].push_back(factor);
    if (dim != classDim)
      targetDims.push_back({factor});
  }
  rule.operands = {inputDims, targetDims};
  if (op.getWeight())
    rule.operands.push_back({inputDims[classDim]});
  rule.results.push_back(
      op.getReduction() == LossReduction::None ? targetDims : TensorFactors());
  return rule;
}

/// With `loss_parallel`, the split is asked for, so its collectives have no
/// cost. Smoothing needs the logits of all classes.
ShardingRule CrossEntropyOp::getLossRule() {
  ShardingRule rule = getClassLossRule(*this, getLabelSmoothing().isZero()
                                                  ? FactorKind::Collective
                                                  : FactorKind::Whole);
  for (tp::Factor &factor : rule.factors)
    if (factor.kind == FactorKind::Collective && !getLossParallel())
      factor.reductions = 2;
  return rule;
}
ShardingRule ClassSumsOp::getSumsRule() {
  ShardingRule rule;
  TensorFactors input, target, result;
  for (auto [dim, size] : llvm::enumerate(getInput().getType().getShape())) {
    unsigned factor = rule.factors.size();
    bool isClass = static_cast<int64_t>(dim) == getClassDim();
    rule.factors.push_back(
        {size, isClass ? FactorKind::Collective : FactorKind::Parallel});
    input.push_back({factor});
    result.push_back(isClass ? DimFactors() : DimFactors{factor});
    if (!isClass)
      target.push_back({factor});
  }
  rule.operands = {input, target};
  rule.results.assign(3, result);
  return rule;
}
ShardingRule NLLLossOp::getLossRule() {
  return getClassLossRule(*this, FactorKind::Whole);
}

//===----------------------------------------------------------------------===//
// Partition hooks
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> ConstantOp::partition(OpBuilder &builder,
                                                    ValueRange, TypeRange types,
                                                    const OpSplit &) {
  auto type = cast<RankedTensorType>(types[0]);
  if (type == getType())
    return SmallVector<Value>{
        ConstantOp::create(builder, getLoc(), getValue())};
  auto splat = cast<DenseElementsAttr>(getValue());
  return SmallVector<Value>{
      ConstantOp::create(builder, getLoc(), splat.resizeSplat(type))};
}

/// Concatenates the numbers of this rank's parts of all segments.
FailureOr<SmallVector<Value>> IotaOp::partition(OpBuilder &builder, ValueRange,
                                                TypeRange types,
                                                const OpSplit &split) {
  auto type = cast<RankedTensorType>(types[0]);
  int64_t dim = getDim();
  tp::ShardingRule rule = getShardingRule();
  ArrayRef<unsigned> factors = rule.results[0][dim];
  if (factors.empty() || split.factorAxes[factors[0]].empty())
    return tp::clonePartitioned(*this, builder, {}, types);
  ImplicitLocOpBuilder b(getLoc(), builder);
  tp::MeshOp mesh = split.mesh;
  auto axes =
      tp::AxisListAttr::get(b.getContext(), split.factorAxes[factors[0]]);
  auto segments = llvm::to_vector(ArrayRef(split.factorSegments[factors[0]]));
  if (segments.empty())
    segments.push_back(getType().getDimSize(dim));
  auto scalar = RankedTensorType::get({}, b.getI64Type());
  auto element = RankedTensorType::get({}, type.getElementType());
  SmallVector<Value> parts;
  int64_t begin = 0;
  for (int64_t size : segments) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = 0;
    for (tp::Interval piece : tp::getDimBlock(size, axes, mesh, split.rank))
      shape[dim] += piece.size;
    double start = getStart().convertToDouble() +
                   getStep().convertToDouble() * static_cast<double>(begin);
    Value numbers = IotaOp::create(b, type.clone(shape), getDimAttr(),
                                   b.getF64FloatAttr(start), getStepAttr());
    Value offset = tp::ShardOffsetOp::create(
        b, scalar, b.getI64IntegerAttr(size),
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()), axes);
    if (element != scalar)
      offset = CastOp::create(b, element, offset);
    auto step = ConstantOp::create(
        b,
        DenseElementsAttr::get(
            element, ArrayRef<Attribute>{b.getIntegerAttr(
                         element.getElementType(),
                         static_cast<int64_t>(getStep().convertToDouble()))}));
    Value shift = MulOp::create(b, element, offset, step);
    parts.push_back(AddOp::create(b, numbers.getType(), numbers, shift));
    begin += size;
  }
  if (parts.size() == 1)
    return parts;
  return SmallVector<Value>{
      ConcatOp::create(b, type, parts, b.getI64IntegerAttr(dim))};
}

/// If one operand is Partial and the other is replicated, the replicated one
/// counts only on the first rank along the axis.
template <typename OpT>
static FailureOr<SmallVector<Value>>
partitionSum(OpT op, OpBuilder &builder, ValueRange operands, TypeRange types,
             const OpSplit &split) {
  SmallVector<Value> parts(operands);
  ShardingRule rule = op.getShardingRule();
  Location loc = op.getLoc();
  for (auto [set, axis] : split.linearAxes)
    for (unsigned i = 0; i < 2; ++i) {
      if (llvm::is_contained(rule.linearSets[set], i))
        continue;
      auto type = cast<RankedTensorType>(parts[i].getType());
      auto i64 = RankedTensorType::get({}, builder.getI64Type());
      auto scalar = RankedTensorType::get({}, type.getElementType());
      tp::MeshOp mesh = split.mesh;
      // In a dimension with one element per rank, the offset of a rank's shard
      // is the rank's index.
      Value index = tp::ShardOffsetOp::create(
          builder, loc, i64, builder.getI64IntegerAttr(mesh.getAxisSize(axis)),
          FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
          tp::AxisListAttr::get(builder.getContext(), axis));
      auto zero = [&](RankedTensorType of) -> Value {
        return ConstantOp::create(builder, loc,
                                  cast<ElementsAttr>(builder.getZeroAttr(of)));
      };
      Value isFirst =
          CompareOp::create(builder, loc, i64.clone(builder.getI1Type()),
                            ComparePredicate::EQ, index, zero(i64));
      parts[i] =
          WhereOp::create(builder, loc, type, isFirst, parts[i], zero(scalar));
    }
  return tp::clonePartitioned(op, builder, parts, types);
}

FailureOr<SmallVector<Value>> AddOp::partition(OpBuilder &builder,
                                               ValueRange operands,
                                               TypeRange types,
                                               const OpSplit &split) {
  return partitionSum(*this, builder, operands, types, split);
}

FailureOr<SmallVector<Value>> SubOp::partition(OpBuilder &builder,
                                               ValueRange operands,
                                               TypeRange types,
                                               const OpSplit &split) {
  return partitionSum(*this, builder, operands, types, split);
}

/// Clones a slice, or a write to one. In a rank's block, only the rank's parts
/// of the earlier segments lie before the range.
template <typename OpT>
static FailureOr<SmallVector<Value>>
partitionRange(OpT op, OpBuilder &builder, ValueRange operands, TypeRange types,
               const OpSplit &split) {
  auto results = tp::clonePartitioned(op, builder, operands, types);
  ShardingRule rule = op.getShardingRule();
  ArrayRef<unsigned> along = rule.operands[0][op.getDim()];
  if (failed(results) || along.empty() || split.factorAxes[along[0]].empty())
    return results;
  int64_t size = op.getInput().getType().getDimSize(op.getDim());
  results->front().template getDefiningOp<OpT>().setStart(
      tp::getLocalStart(split, along[0], size, op.getStart()));
  return results;
}

FailureOr<SmallVector<Value>> SliceOp::partition(OpBuilder &builder,
                                                 ValueRange operands,
                                                 TypeRange types,
                                                 const OpSplit &split) {
  return partitionRange(*this, builder, operands, types, split);
}

FailureOr<SmallVector<Value>> SliceScatterOp::partition(OpBuilder &builder,
                                                        ValueRange operands,
                                                        TypeRange types,
                                                        const OpSplit &split) {
  if (getSource().getType().getDimSize(getDim()) == 0)
    return SmallVector<Value>{operands[0]};
  return partitionRange(*this, builder, operands, types, split);
}

/// A mean divides by the global count: the local sum divided by it is the
/// Partial. Small floats are summed and divided in f32, since their sum may
/// overflow.
FailureOr<SmallVector<Value>> ReduceOp::partition(OpBuilder &builder,
                                                  ValueRange operands,
                                                  TypeRange types,
                                                  const OpSplit &split) {
  auto local = cast<RankedTensorType>(operands[0].getType());
  if (getKind() != ReduceKind::Mean || local == getInput().getType())
    return tp::clonePartitioned(*this, builder, operands, types);
  auto count = [&](RankedTensorType type) {
    int64_t product = 1;
    for (int64_t dim : getDims())
      product *= type.getDimSize(dim);
    return product;
  };
  int64_t number = count(getInput().getType());
  if (count(local) == number)
    return tp::clonePartitioned(*this, builder, operands, types);
  ImplicitLocOpBuilder b(getLoc(), builder);
  Type element = local.getElementType(), wide = expr::getWideElement(element);
  Value sum =
      expr::reduce(b, ReduceKind::Sum, expr::castTo(b, operands[0], wide),
                   getDims(), getKeepdim());
  Value divisor = expr::constant(b, wide, static_cast<double>(number));
  return SmallVector<Value>{
      expr::castTo(b, expr::div(b, sum, divisor), element)};
}
