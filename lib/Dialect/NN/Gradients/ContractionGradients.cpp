//===- ContractionGradients.cpp - Gradients of products and embedding -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::GradientBuilder;

void LinearOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient();
  if (b.wants(0))
    b.setGradient(0, LinearOp::create(b, g, transposeLast(b, getWeight())));
  if (b.wants(1))
    b.setGradient(1, OuterSumOp::create(b, g, getInput()));
}

void MatmulOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient(), lhs = getLhs(), rhs = getRhs();
  if (b.wants(0))
    b.setGradient(0,
                  sumTo(b, matmul(b, g, transposeLast(b, rhs)), typeOf(lhs)));
  if (!b.wants(1))
    return;
  // If the batch shares one matrix, its gradient is one contraction over the
  // batch.
  if (typeOf(rhs).getRank() == 2 && typeOf(lhs).getRank() > 2)
    b.setGradient(1, OuterSumOp::create(b, lhs, g));
  else
    b.setGradient(1,
                  sumTo(b, matmul(b, transposeLast(b, lhs), g), typeOf(rhs)));
}

/// The op is linear in each operand: lhs[b, m] gets Σ_n g[m, n] * rhs[b, n].
void OuterSumOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient();
  if (b.wants(0))
    b.setGradient(0, LinearOp::create(b, getRhs(), g));
  if (b.wants(1))
    b.setGradient(1, LinearOp::create(b, getLhs(), transposeLast(b, g)));
}

void EmbeddingOp::buildGradient(GradientBuilder &b) {
  if (!b.wants(1))
    return;
  Value rows = b.getGradient();
  if (auto padding = getPaddingAttr()) {
    Value counted = compare(b, ComparePredicate::NE, getIndices(),
                            static_cast<double>(padding.getInt()));
    counted = unsqueeze(b, counted, typeOf(counted).getRank());
    rows = keep(b, counted, rows);
  }
  if (getScaleGradByFreq()) {
    // The number of indices that name the same row.
    Type element = elementOf(rows), wide = getWideElement(element);
    SmallVector<int64_t> column(getIndices().getType().getShape());
    column.push_back(1);
    auto columnType = RankedTensorType::get(column, wide);
    auto tableType =
        RankedTensorType::get({getWeight().getType().getDimSize(0), 1}, wide);
    Value counts = ScatterAddRowsOp::create(b, tableType, getIndices(),
                                            filled(b, columnType, 1));
    Value count = EmbeddingOp::create(b, getIndices(), counts, IntegerAttr());
    rows = castTo(b, div(b, castTo(b, rows, wide), count), element);
  }
  b.setGradient(1, ScatterAddRowsOp::create(b, getWeight().getType(),
                                            getIndices(), rows));
}

void ScatterAddRowsOp::buildGradient(GradientBuilder &b) {
  if (b.wants(1))
    b.setGradient(1, EmbeddingOp::create(b, getIndices(), b.getGradient(),
                                         IntegerAttr()));
}
