//===- ShapeGradients.cpp - Gradients of ops that move elements -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::GradientBuilder;

void ReshapeOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, reshape(b, b.getGradient(), typeOf(getInput()).getShape()));
}

void TransposeOp::buildGradient(GradientBuilder &b) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = to;
  b.setGradient(0, transpose(b, b.getGradient(), inverse));
}

void BroadcastOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, sumTo(b, b.getGradient(), getInput().getType()));
}

/// Adds each slice of `rows` along `dim` to the slice of zeros that `index`, of
/// one dimension, names.
static Value scatterAddAlong(GradientBuilder &b, Value rows, Value index,
                             int64_t dim, RankedTensorType type) {
  int64_t rank = type.getRank();
  SmallVector<int64_t> toFront{dim}, back(rank);
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim)
      toFront.push_back(d);
  for (auto [to, from] : llvm::enumerate(toFront))
    back[from] = to;
  SmallVector<int64_t> shape;
  for (int64_t from : toFront)
    shape.push_back(type.getDimSize(from));
  int64_t columns = ShapedType::getNumElements(ArrayRef(shape).drop_front());
  Value front = transpose(b, rows, toFront);
  Value flat = reshape(b, front, {typeOf(index).getDimSize(0), columns});
  Value sums = ScatterAddRowsOp::create(
      b, RankedTensorType::get({shape[0], columns}, type.getElementType()),
      index, flat);
  return transpose(b, reshape(b, sums, shape), back);
}

/// Spreads `value` along `dim` to every `step`th of `size` indices, with zeros
/// between. All other dimensions stay separate, because a merged one couldn't
/// be split along each of its factors.
static Value spread(GradientBuilder &b, Value value, int64_t dim, int64_t step,
                    int64_t size) {
  auto type = typeOf(value);
  SmallVector<int64_t> shape(type.getShape());
  int64_t count = shape[dim];
  shape.insert(shape.begin() + dim + 1, step - 1);
  Value zeros = filled(b, type.clone(shape), 0);
  shape[dim + 1] = step;
  Value column = unsqueeze(b, value, dim + 1);
  Value wide = ConcatOp::create(b, ValueRange{column, zeros}, dim + 1);
  shape.erase(shape.begin() + dim + 1);
  shape[dim] = count * step;
  Value flat = reshape(b, wide, shape);
  if (size == shape[dim])
    return flat;
  shape[dim] = size;
  return SliceOp::create(b, type.clone(shape), flat, b.getI64IntegerAttr(dim),
                         b.getI64IntegerAttr(0), b.getI64IntegerAttr(1));
}

void SliceOp::buildGradient(GradientBuilder &b) {
  auto type = getInput().getType();
  Value g = b.getGradient();
  int64_t dim = getDim(), start = getStart(), step = getStep();
  int64_t size = getType().getDimSize(dim), whole = type.getDimSize(dim);
  if (step != 1 && size > 1) {
    size = std::min(size * step, whole - start);
    g = spread(b, g, dim, step, size);
  }
  SmallVector<Value> parts;
  auto addZeros = [&](int64_t count) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = count;
    if (count)
      parts.push_back(filled(b, type.clone(shape), 0));
  };
  addZeros(start);
  parts.push_back(g);
  addZeros(whole - start - size);
  b.setGradient(0, parts.size() == 1 ? g : ConcatOp::create(b, parts, dim));
}

void SliceScatterOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient();
  IntegerAttr dim = getDimAttr(), start = getStartAttr(), step = getStepAttr();
  RankedTensorType type = getSource().getType();
  if (b.wants(0))
    b.setGradient(
        0, SliceScatterOp::create(b, g, filled(b, type, 0), dim, start, step));
  if (b.wants(1))
    b.setGradient(1, SliceOp::create(b, type, g, dim, start, step));
}

void ConcatOp::buildGradient(GradientBuilder &b) {
  int64_t start = 0;
  for (auto [index, operand] : llvm::enumerate(getOperands())) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (b.wants(index))
      b.setGradient(index, SliceOp::create(b, type, b.getGradient(),
                                           b.getI64IntegerAttr(getDim()),
                                           b.getI64IntegerAttr(start),
                                           b.getI64IntegerAttr(1)));
    start += type.getDimSize(getDim());
  }
}

/// The largest or the smallest elements along the dimension, if the index is
/// where they are. The gradient of their reduction divides among equal ones.
Value GatherOp::buildUndifferentiated(ImplicitLocOpBuilder &b) {
  auto index = getIndex().getDefiningOp<ArgMaxOp>();
  if (!index || !index.getKeepdim() || index.getDim() != getDim())
    return {};
  auto negative = index.getInput().getDefiningOp<NegOp>();
  bool isSmallest = negative && negative.getInput() == getInput();
  if (index.getInput() != getInput() && !isSmallest)
    return {};
  int64_t dim = getDim();
  auto extremum =
      ReduceOp::create(b, isSmallest ? ReduceKind::Min : ReduceKind::Max,
                       getInput(), ArrayRef(dim), /*keepdim=*/true);
  extremum->setDiscardableAttrs(getOperation()->getDiscardableAttrDictionary());
  return extremum;
}

/// dx[i, v, k] = Σ_j g[i, j, k] where index[i, j, k] = v.
void GatherOp::buildGradient(GradientBuilder &b) {
  if (!b.wants(0))
    return;
  auto type = getInput().getType();
  int64_t dim = getDim(), rank = type.getRank();
  // (…, v, …, j): the gathered dimension moves to the end.
  auto moveToEnd = [&](Value value) {
    SmallVector<int64_t> permutation;
    for (int64_t d = 0; d < rank; ++d)
      if (d != dim)
        permutation.push_back(d);
    permutation.push_back(dim);
    return unsqueeze(b, transpose(b, value, permutation), dim);
  };
  Value index = moveToEnd(getIndex()), g = moveToEnd(b.getGradient());
  SmallVector<int64_t> candidates(rank + 1, 1);
  candidates[dim] = type.getDimSize(dim);
  Value isSame = compare(b, ComparePredicate::EQ, index,
                         iota(b, candidates, dim, elementOf(index)));
  Value sums = reduce(b, ReduceKind::Sum, keep(b, isSame, g), {rank}, false);
  // The index may cover less than the input.
  for (int64_t d = 0; d < rank; ++d) {
    SmallVector<int64_t> shape(expr::typeOf(sums).getShape());
    int64_t missing = type.getDimSize(d) - shape[d];
    if (!missing)
      continue;
    shape[d] = missing;
    Value zeros = filled(b, type.clone(shape), 0);
    sums = ConcatOp::create(b, ValueRange{sums, zeros}, d);
  }
  b.setGradient(0, sums);
}

void IndexSelectOp::buildGradient(GradientBuilder &b) {
  if (b.wants(0))
    b.setGradient(0, scatterAddAlong(b, b.getGradient(), getIndex(), getDim(),
                                     getInput().getType()));
}
