//===- IndexGradients.cpp - Gradients of sorts, scans and scatters --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/Expressions.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::GradientBuilder;

static Value scatter(GradientBuilder &b, ScatterKind kind, Value input,
                     Value index, Value source, int64_t dim) {
  return ScatterOp::create(b, kind, input, index, source, dim);
}

/// Each value goes back to where it is from.
void SortOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient(0);
  if (!g)
    return;
  Value zeros = filled(b, getInput().getType(), 0);
  b.setGradient(
      0, scatter(b, ScatterKind::Copy, zeros, b.getResult(1), g, getDim()));
}

void CumSumOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0,
                CumSumOp::create(b, b.getGradient(), getDim(), !getReverse()));
}

/// What the index names: one value for each element of the source.
static Value lookUp(GradientBuilder &b, ScatterOp op, Value table) {
  if (op.namesSlices())
    return IndexSelectOp::create(b, table, op.getIndex(), op.getDim());
  return GatherOp::create(b, table, op.getIndex(), op.getDim());
}

/// The gradient of a maximum or minimum is divided among all elements that are
/// equal to it, those of the input included, as PyTorch does.
static void buildExtremumGradient(ScatterOp op, GradientBuilder &b) {
  Value g = b.getGradient(), result = b.getResult();
  Value one = constantLike(b, g, 1), zero = constantLike(b, g, 0);
  auto isEqual = [&](Value x, Value y) {
    return select(b, compare(b, ComparePredicate::EQ, x, y), one, zero);
  };
  Value fromInput = isEqual(op.getInput(), result);
  Value fromSource = isEqual(op.getSource(), lookUp(b, op, result));
  Value count = scatter(b, ScatterKind::Add, fromInput, op.getIndex(),
                        fromSource, op.getDim());
  Value share = div(b, g, count);
  if (b.wants(0))
    b.setGradient(0, mul(b, fromInput, share));
  if (b.wants(2))
    b.setGradient(2, mul(b, fromSource, lookUp(b, op, share)));
}

void ScatterOp::buildGradient(GradientBuilder &b) {
  if (getKind() == ScatterKind::Max || getKind() == ScatterKind::Min)
    return buildExtremumGradient(*this, b);
  Value g = b.getGradient();
  if (b.wants(2))
    b.setGradient(2, lookUp(b, *this, g));
  if (!b.wants(0))
    return;
  Value zeros = filled(b, getSource().getType(), 0);
  b.setGradient(
      0, getKind() == ScatterKind::Add
             ? g
             : scatter(b, ScatterKind::Copy, g, getIndex(), zeros, getDim()));
}

//===----------------------------------------------------------------------===//
// Products of groups
//===----------------------------------------------------------------------===//

void GroupedMatmulOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient();
  if (b.wants(0))
    b.setGradient(0, GroupedMatmulOp::create(
                         b, g, transposeLast(b, getWeight()), getBounds()));
  if (b.wants(1))
    b.setGradient(1, GroupedOuterSumOp::create(b, getInput(), g, getBounds()));
}

void GroupedOuterSumOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient();
  if (b.wants(0))
    b.setGradient(0, GroupedMatmulOp::create(b, getRhs(), transposeLast(b, g),
                                             getBounds()));
  if (b.wants(1))
    b.setGradient(1, GroupedMatmulOp::create(b, getLhs(), g, getBounds()));
}
