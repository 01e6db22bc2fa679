//===- ReductionLowering.cpp - nn.reduce and nn.argmax --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LinalgBuilders.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

using nn::ReduceKind;
using utils::IteratorType;

static Value buildIdentity(ImplicitLocOpBuilder &b, ReduceKind kind,
                           Type type) {
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    return getScalar(b, type, 0);
  case ReduceKind::Product:
    return getScalar(b, type, 1);
  case ReduceKind::Max:
    return getLowest(b, type);
  case ReduceKind::Min: {
    if (isa<FloatType>(type))
      return getScalar(b, type, std::numeric_limits<double>::infinity());
    auto highest = APInt::getSignedMaxValue(type.getIntOrFloatBitWidth());
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, highest));
  }
  }
  llvm_unreachable("all kinds are handled");
}

static Value combine(ImplicitLocOpBuilder &b, ReduceKind kind, Value acc,
                     Value value) {
  bool isFloat = isa<FloatType>(acc.getType());
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    return addToSum(b, acc, value);
  case ReduceKind::Product:
    if (isFloat)
      return arith::MulFOp::create(b, acc, value,
                                   arith::FastMathFlags::reassoc);
    return arith::MulIOp::create(b, acc, value);
  case ReduceKind::Max:
    if (isFloat)
      return arith::MaximumFOp::create(b, acc, value);
    return arith::MaxSIOp::create(b, acc, value);
  case ReduceKind::Min:
    if (isFloat)
      return arith::MinimumFOp::create(b, acc, value);
    return arith::MinSIOp::create(b, acc, value);
  }
  llvm_unreachable("all kinds are handled");
}

namespace {
struct ReducePattern : OpRewritePattern<nn::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getInput());
    RankedTensorType resultType = getTensorType(op.getResult());
    if (op.getDims().empty()) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }

    ReduceKind kind = op.getKind();
    Type computeType = getComputeType(type.getElementType());
    Value result = buildReduction(
        b, asRows(op.getInput(), type.getRank(), {}), type.getShape(),
        op.getDims(), buildIdentity(b, kind, computeType),
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) {
          return combine(b, kind, acc, args[0]);
        });
    if (kind == ReduceKind::Mean)
      result = buildMean(b, op, result);
    result = buildCast(b, result, resultType.getElementType());
    rewriter.replaceOp(op, buildReshape(b, result, resultType.getShape()));
    return success();
  }

private:
  static Value buildMean(ImplicitLocOpBuilder &b, nn::ReduceOp op, Value sum) {
    RankedTensorType type = getTensorType(op.getInput());
    int64_t count = 1;
    for (int64_t dim : op.getDims())
      count *= type.getDimSize(dim);
    return buildElementwise(
        b, getTensorType(sum).clone(type.getElementType()), ValueRange(sum),
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
          Type type = args[0].getType();
          if (isa<FloatType>(type))
            return arith::DivFOp::create(b, args[0], getScalar(b, type, count));
          // The mean of no integers is 0.
          Value divisor = getScalar(b, type, std::max<int64_t>(count, 1));
          return arith::DivSIOp::create(b, args[0], divisor);
        });
  }
};

struct ArgMaxPattern : OpRewritePattern<nn::ArgMaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ArgMaxOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getInput());
    RankedTensorType resultType = getTensorType(op.getResult());
    int64_t dim = op.getDim(), rank = type.getRank();
    Type computeType = getComputeType(type.getElementType());

    SmallVector<int64_t> rowShape(type.getShape());
    rowShape.erase(rowShape.begin() + dim);
    Value bests = buildFilled(b, rowShape, getLowest(b, computeType));
    Value zeros = buildFilled(b, rowShape, getScalar(b, b.getI64Type(), 0));
    SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
    iterators[dim] = IteratorType::reduction;

    SmallVector<Value> results = buildGeneric(
        b, asRows(op.getInput(), rank, {}),
        {asRows(bests, rank, dim), asRows(zeros, rank, dim)}, iterators,
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
            ArrayRef<Value> accs) -> SmallVector<Value> {
          Value isBetter = buildIsBetter(b, args[0], accs[0]);
          Value index = arith::IndexCastOp::create(
              b, b.getI64Type(), linalg::IndexOp::create(b, dim));
          return {arith::SelectOp::create(b, isBetter, args[0], accs[0]),
                  arith::SelectOp::create(b, isBetter, index, accs[1])};
        });
    rewriter.replaceOp(op, buildReshape(b, results[1], resultType.getShape()));
    return success();
  }

private:
  /// Whether `value` is larger than `best`; NaN is larger than all else.
  static Value buildIsBetter(ImplicitLocOpBuilder &b, Value value, Value best) {
    if (!isa<FloatType>(value.getType()))
      return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, value, best);
    // Unordered or greater, unless the best is NaN already.
    Value isGreater =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, value, best);
    Value isOrdered =
        arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, best, best);
    return arith::AndIOp::create(b, isGreater, isOrdered);
  }
};
} // namespace

void mlir::tp::nnlinalg::populateReductionPatterns(
    RewritePatternSet &patterns) {
  patterns.add<ReducePattern, ArgMaxPattern>(patterns.getContext());
}
