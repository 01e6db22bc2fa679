//===- ScatterRows.cpp - Sums of rows by index ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of an embedding: row v of the result is the sum of all rows i
// whose index is v, in the order of i. One thread visits the rows and adds each
// to its row of the result. Many threads can't do so without atomic additions,
// whose order varies. So for many threads the indices are sorted first, and
// each row of the result adds up the rows that belong to it. The result is
// written once, and each row is read once.
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
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

static Value buildZeros(ImplicitLocOpBuilder &b, RankedTensorType type) {
  return buildFilled(b, type.getShape(),
                     getScalar(b, type.getElementType(), 0));
}

/// Replaces `op` by what `build` returns for indices (n), rows (n, columns) and
/// the result's type, whose element type is the one to compute in. `build` is
/// only called if none of them is empty.
static LogicalResult replaceScatter(
    nn::ScatterAddRowsOp op, PatternRewriter &rewriter,
    function_ref<Value(ImplicitLocOpBuilder &, Value, Value, RankedTensorType)>
        build) {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  RankedTensorType type = getTensorType(op.getResult());
  buildIndexCheck(b, op, op.getIndices(), type.getDimSize(0));
  auto wide =
      cast<RankedTensorType>(type.clone(getComputeType(type.getElementType())));
  Value sums;
  if (type.getNumElements() == 0 ||
      getTensorType(op.getRows()).getNumElements() == 0) {
    sums = buildZeros(b, wide);
  } else {
    int64_t count = getTensorType(op.getIndices()).getNumElements();
    int64_t columns = getTensorType(op.getRows()).getShape().back();
    sums = build(b, buildReshape(b, op.getIndices(), {count}),
                 buildReshape(b, op.getRows(), {count, columns}), wide);
  }
  rewriter.replaceOp(op, buildCast(b, sums, type.getElementType()));
  return success();
}

namespace {
/// Two loops that add to the result in place, in the order of the indices.
struct ScatterAddRowsPattern : OpRewritePattern<nn::ScatterAddRowsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ScatterAddRowsOp op,
                                PatternRewriter &rewriter) const override {
    return replaceScatter(op, rewriter, addRows);
  }

private:
  static Value addRows(ImplicitLocOpBuilder &b, Value indices, Value rows,
                       RankedTensorType type) {
    int64_t bound = type.getDimSize(0);
    Value sums = buildZeros(b, type);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    auto loop =
        [&](int64_t count, Value init,
            llvm::function_ref<Value(ImplicitLocOpBuilder &, Value, Value)>
                body) {
          return scf::ForOp::create(
                     b, constant(0), constant(count), constant(1), init,
                     [&](OpBuilder &builder, Location loc, Value i,
                         ValueRange state) {
                       ImplicitLocOpBuilder inner(loc, builder);
                       scf::YieldOp::create(inner, body(inner, i, state[0]));
                     })
              .getResult(0);
        };
    ArrayRef<int64_t> shape = getTensorType(rows).getShape();
    Value first = constant(0), last = constant(shape[1]), one = constant(1);
    return loop(
        shape[0], sums, [&](ImplicitLocOpBuilder &b, Value i, Value sum) {
          Value index = tensor::ExtractOp::create(b, indices, i);
          Value row = buildSafeIndex(b, index, bound);
          return scf::ForOp::create(
                     b, first, last, one, sum,
                     [&](OpBuilder &builder, Location loc, Value j,
                         ValueRange state) {
                       ImplicitLocOpBuilder b(loc, builder);
                       Value old =
                           tensor::ExtractOp::create(b, state[0], {row, j});
                       Value more = tensor::ExtractOp::create(b, rows, {i, j});
                       more = convertScalar(b, more, old.getType());
                       Value next = arith::AddFOp::create(b, old, more);
                       Value inserted = tensor::InsertOp::create(
                           b, next, state[0], ValueRange{row, j});
                       scf::YieldOp::create(b, inserted);
                     })
              .getResult(0);
        });
  }
};

/// For devices: sorted indices, and one sum for each element of the result.
struct GatherAddedRowsPattern : OpRewritePattern<nn::ScatterAddRowsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ScatterAddRowsOp op,
                                PatternRewriter &rewriter) const override {
    return replaceScatter(op, rewriter, gatherRows);
  }

private:
  static Value constant(ImplicitLocOpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  static Value toIndex(ImplicitLocOpBuilder &b, Value value) {
    return arith::IndexCastOp::create(b, b.getIndexType(), value);
  }
  static Value toNumber(ImplicitLocOpBuilder &b, Value index) {
    return arith::IndexCastOp::create(b, b.getI32Type(), index);
  }
  static Value isEqual(ImplicitLocOpBuilder &b, Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  }
  static Value isLess(ImplicitLocOpBuilder &b, Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
  }

  /// The numbers of the indices, sorted by index, then by number. The place of
  /// each is how many come before it. That takes count² comparisons, but of
  /// numbers that a cache holds, and in a single round.
  static Value buildOrder(ImplicitLocOpBuilder &b, Value indices,
                          int64_t bound) {
    int64_t count = getTensorType(indices).getDimSize(0);
    AffineMap row = AffineMap::get(2, 0, b.getAffineDimExpr(0)),
              other = AffineMap::get(2, 0, b.getAffineDimExpr(1));
    Value zero = getScalar(b, b.getI32Type(), 0);
    Value places = buildReduction(
        b, {{indices, row}, {indices, other}}, {count, count}, 1, zero,
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value sum) -> Value {
          Value own = buildSafeIndex(b, args[0], bound),
                second = buildSafeIndex(b, args[1], bound);
          Value isEarlier = isLess(b, linalg::IndexOp::create(b, 1),
                                   linalg::IndexOp::create(b, 0));
          Value isBefore = arith::OrIOp::create(
              b, isLess(b, second, own),
              arith::AndIOp::create(b, isEqual(b, second, own), isEarlier));
          return addToSum(b, sum,
                          arith::ExtUIOp::create(b, b.getI32Type(), isBefore));
        });
    return buildReduction(
        b, Operand{places, other}, {count, count}, 1, zero,
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value sum) -> Value {
          Value isHere =
              isEqual(b, args[0], toNumber(b, linalg::IndexOp::create(b, 0)));
          Value number = toNumber(b, linalg::IndexOp::create(b, 1));
          return addToSum(
              b, sum,
              arith::SelectOp::create(b, isHere, number,
                                      getScalar(b, b.getI32Type(), 0)));
        });
  }

  /// How many indices are less than 0, 1, … bound, by binary search.
  static Value buildStarts(ImplicitLocOpBuilder &b, Value indices, Value order,
                           int64_t bound) {
    int64_t count = getTensorType(indices).getDimSize(0);
    int64_t rounds = llvm::Log2_64(count) + 1;
    return buildElementwise(
        b, RankedTensorType::get({bound + 1}, b.getI32Type()),
        ArrayRef<Operand>(),
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value>) -> Value {
          Value row = linalg::IndexOp::create(b, 0);
          Value zero = constant(b, 0), one = constant(b, 1);
          auto loop = scf::ForOp::create(
              b, zero, constant(b, rounds), one, zero,
              [&](OpBuilder &builder, Location loc, Value round,
                  ValueRange state) {
                ImplicitLocOpBuilder b(loc, builder);
                Value step = arith::ShRUIOp::create(
                    b, constant(b, int64_t(1) << (rounds - 1)), round);
                Value next = arith::AddIOp::create(b, state[0], step);
                Value isInside = isLess(b, next, constant(b, count + 1));
                Value last = arith::SelectOp::create(
                    b, isInside, arith::SubIOp::create(b, next, one), zero);
                Value number = tensor::ExtractOp::create(b, order, last);
                Value index =
                    tensor::ExtractOp::create(b, indices, toIndex(b, number));
                Value isBelow = arith::AndIOp::create(
                    b, isInside,
                    isLess(b, buildSafeIndex(b, index, bound), row));
                Value kept =
                    arith::SelectOp::create(b, isBelow, next, state[0]);
                scf::YieldOp::create(b, kept);
              });
          return toNumber(b, loop.getResult(0));
        });
  }

  static Value gatherRows(ImplicitLocOpBuilder &b, Value indices, Value rows,
                          RankedTensorType type) {
    int64_t bound = type.getDimSize(0);
    Value order = buildOrder(b, indices, bound);
    Value starts = buildStarts(b, indices, order, bound);
    AffineMap row = AffineMap::get(2, 0, b.getAffineDimExpr(0));
    OpFoldResult size = b.getIndexAttr(bound), one = b.getIndexAttr(1);
    auto getStarts = [&](int64_t first) -> Operand {
      OpFoldResult offset = b.getIndexAttr(first);
      return {tensor::ExtractSliceOp::create(b, starts, offset, size, one),
              row};
    };
    return buildElementwise(
        b, type, {getStarts(0), getStarts(1)},
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
          Value column = linalg::IndexOp::create(b, 1);
          return scf::ForOp::create(
                     b, toIndex(b, args[0]), toIndex(b, args[1]),
                     constant(b, 1), getScalar(b, type.getElementType(), 0),
                     [&](OpBuilder &builder, Location loc, Value i,
                         ValueRange state) {
                       ImplicitLocOpBuilder b(loc, builder);
                       Value number =
                           toIndex(b, tensor::ExtractOp::create(b, order, i));
                       Value more = tensor::ExtractOp::create(
                           b, rows, ValueRange{number, column});
                       more = convertScalar(b, more, type.getElementType());
                       scf::YieldOp::create(
                           b, arith::AddFOp::create(b, state[0], more)
                                  .getResult());
                     })
              .getResult(0);
        });
  }
};
} // namespace

void mlir::tp::nnlinalg::populateScatterPatterns(RewritePatternSet &patterns,
                                                 bool onDevice) {
  if (onDevice)
    patterns.add<GatherAddedRowsPattern>(patterns.getContext());
  else
    patterns.add<ScatterAddRowsPattern>(patterns.getContext());
}
