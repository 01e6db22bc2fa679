//===- GroupedLowering.cpp - Products of groups of rows -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each element of the result is a sum whose length depends on the bounds. On the
// host, a call of the runtime replaces the products (RoutingToTPRT.cpp).
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "LookupLowering.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

static Value constant(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

/// Bound `number` of groups of `numRows` rows.
static Value buildBound(ImplicitLocOpBuilder &b, Value bounds, Value number,
                        int64_t numRows) {
  return buildSafeIndex(b, tensor::ExtractOp::create(b, bounds, number),
                        numRows + 1);
}

/// acc plus what `body` gives for begin <= i < end.
static Value
buildSum(ImplicitLocOpBuilder &b, Value begin, Value end, Value acc,
         function_ref<Value(ImplicitLocOpBuilder &, Value i, Value acc)> body) {
  return scf::ForOp::create(
             b, begin, end, constant(b, 1), acc,
             [&](OpBuilder &builder, Location loc, Value i, ValueRange state) {
               ImplicitLocOpBuilder inner(loc, builder);
               scf::YieldOp::create(inner, body(inner, i, state[0]));
             })
      .getResult(0);
}

/// acc + x[…] * y[…], in acc's type.
static Value addProduct(ImplicitLocOpBuilder &b, Value acc, Value x,
                        ArrayRef<Value> atX, Value y, ArrayRef<Value> atY) {
  auto read = [&](Value tensor, ArrayRef<Value> at) {
    return convertScalar(b, tensor::ExtractOp::create(b, tensor, at),
                         acc.getType());
  };
  Value product = arith::MulFOp::create(b, read(x, atX), read(y, atY),
                                        arith::FastMathFlags::contract);
  return addToSum(b, acc, product);
}

/// Replaces `op`, on groups of `numRows` rows, by what `body` gives for each
/// element of its result.
static LogicalResult replaceByElements(
    Operation *op, Value bounds, int64_t numRows, PatternRewriter &rewriter,
    function_ref<Value(ImplicitLocOpBuilder &, Value zero)> body) {
  ImplicitLocOpBuilder b(op->getLoc(), rewriter);
  RankedTensorType type = getTensorType(op->getResult(0));
  buildIndexCheck(b, op, bounds, numRows + 1);
  // If an operand has no elements, no body may read it.
  bool isEmpty = llvm::any_of(op->getOperands(), [](Value operand) {
    return getTensorType(operand).getNumElements() == 0;
  });
  if (isEmpty || type.getNumElements() == 0) {
    Attribute zero = b.getZeroAttr(type.getElementType());
    rewriter.replaceOp(op,
                       buildConstant(b, DenseElementsAttr::get(type, zero)));
    return success();
  }
  Type wide = getComputeType(type.getElementType());
  rewriter.replaceOp(
      op, buildElementwise(b, type, ArrayRef<Operand>(),
                           [&](ImplicitLocOpBuilder &b, ArrayRef<Value>) {
                             return body(b, getScalar(b, wide, 0));
                           }));
  return success();
}

namespace {
/// Sums over depth, in each group that has the row.
struct GroupedMatmulPattern : OpRewritePattern<nn::GroupedMatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::GroupedMatmulOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> weight = getTensorType(op.getWeight()).getShape();
    int64_t numRows = getTensorType(op.getInput()).getDimSize(0);
    return replaceByElements(
        op, op.getBounds(), numRows, rewriter,
        [&](ImplicitLocOpBuilder &b, Value zero) {
          Value row = linalg::IndexOp::create(b, 0),
                column = linalg::IndexOp::create(b, 1);
          auto addGroup = [&](ImplicitLocOpBuilder &b, Value group, Value acc) {
            Value next = arith::AddIOp::create(b, group, constant(b, 1));
            Value hasBegun = arith::CmpIOp::create(
                b, arith::CmpIPredicate::ule,
                buildBound(b, op.getBounds(), group, numRows), row);
            Value endsBehind = arith::CmpIOp::create(
                b, arith::CmpIPredicate::ugt,
                buildBound(b, op.getBounds(), next, numRows), row);
            Value depth = arith::SelectOp::create(
                b, arith::AndIOp::create(b, hasBegun, endsBehind),
                constant(b, weight[1]), constant(b, 0));
            return buildSum(b, constant(b, 0), depth, acc,
                            [&](ImplicitLocOpBuilder &b, Value k, Value acc) {
                              return addProduct(b, acc, op.getInput(), {row, k},
                                                op.getWeight(),
                                                {group, k, column});
                            });
          };
          return buildSum(b, constant(b, 0), constant(b, weight[0]), zero,
                          addGroup);
        });
  }
};

/// Sums over the rows of the group.
struct GroupedOuterSumPattern : OpRewritePattern<nn::GroupedOuterSumOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::GroupedOuterSumOp op,
                                PatternRewriter &rewriter) const override {
    int64_t numRows = getTensorType(op.getLhs()).getDimSize(0);
    return replaceByElements(
        op, op.getBounds(), numRows, rewriter,
        [&](ImplicitLocOpBuilder &b, Value zero) {
          Value group = linalg::IndexOp::create(b, 0),
                depth = linalg::IndexOp::create(b, 1),
                column = linalg::IndexOp::create(b, 2);
          Value next = arith::AddIOp::create(b, group, constant(b, 1));
          return buildSum(b, buildBound(b, op.getBounds(), group, numRows),
                          buildBound(b, op.getBounds(), next, numRows), zero,
                          [&](ImplicitLocOpBuilder &b, Value row, Value acc) {
                            return addProduct(b, acc, op.getLhs(), {row, depth},
                                              op.getRhs(), {row, column});
                          });
        });
  }
};
} // namespace

void mlir::tp::nnlinalg::populateGroupedPatterns(RewritePatternSet &patterns) {
  patterns.add<GroupedMatmulPattern, GroupedOuterSumPattern>(
      patterns.getContext());
}
