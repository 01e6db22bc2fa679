//===- NormalizationLowering.cpp - Norms and softmax ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statistics of rows are reductions and small elementwise ops on one element
// per row, followed by one elementwise op on all elements.
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

static Value buildMaximum(ImplicitLocOpBuilder &b, Operand input,
                          ArrayRef<int64_t> shape, int64_t dim, Type type) {
  return buildReduction(
      b, input, shape, dim, getLowest(b, type),
      [](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) {
        return arith::MaximumFOp::create(b, acc, args[0]).getResult();
      });
}

static Value subtractAndExp(ImplicitLocOpBuilder &b, ArrayRef<Value> args) {
  return math::ExpOp::create(b, arith::SubFOp::create(b, args[0], args[1]));
}

/// `value`, or `otherwise` if `value` equals `exception`.
static Value replace(ImplicitLocOpBuilder &b, Value value, double otherwise,
                     Value exception) {
  Type type = value.getType();
  Value isException =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value, exception);
  return arith::SelectOp::create(b, isException, getScalar(b, type, otherwise),
                                 value);
}

/// In a row of -inf, differences from the maximum are NaN. If `isSafe`, 0
/// replaces such a maximum; all exponentials are then 0, and 1 replaces their
/// sum.
static Value buildRowSoftmax(ImplicitLocOpBuilder &b, Value input, int64_t dim,
                             Type elementType, bool isSafe) {
  RankedTensorType type = getTensorType(input);
  Type computeType = getComputeType(type.getElementType());
  Operand elements = asRows(input, type.getRank(), {});
  Value maximum = buildMaximum(b, elements, type.getShape(), dim, computeType);
  if (isSafe)
    maximum = buildElementwise(
        b, getTensorType(maximum), ValueRange(maximum),
        [](ImplicitLocOpBuilder &b, ArrayRef<Value> args) {
          return replace(b, args[0], 0, getLowest(b, args[0].getType()));
        });
  Value exps = buildElementwise(
      b, type.clone(computeType),
      {elements, asRows(maximum, type.getRank(), dim)}, subtractAndExp);
  Operand expElements = asRows(exps, type.getRank(), {});
  Value sum = buildReduction(
      b, expElements, type.getShape(), dim, getScalar(b, computeType, 0),
      [](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) {
        return addToSum(b, acc, args[0]);
      });
  if (isSafe)
    sum = buildElementwise(b, getTensorType(sum), ValueRange(sum),
                           [](ImplicitLocOpBuilder &b, ArrayRef<Value> args) {
                             return replace(b, args[0], 1,
                                            getScalar(b, args[0].getType(), 0));
                           });
  return buildElementwise(
      b, type.clone(elementType),
      {expElements, asRows(sum, type.getRank(), dim)},
      [](ImplicitLocOpBuilder &b, ArrayRef<Value> args) {
        return arith::DivFOp::create(b, args[0], args[1]).getResult();
      });
}

Value mlir::tp::nnlinalg::buildSoftmax(ImplicitLocOpBuilder &b, Value input,
                                       int64_t dim, Type elementType) {
  return buildRowSoftmax(b, input, dim, elementType, /*isSafe=*/false);
}

Value mlir::tp::nnlinalg::buildSafeSoftmax(ImplicitLocOpBuilder &b, Value input,
                                           int64_t dim, Type elementType) {
  return buildRowSoftmax(b, input, dim, elementType, /*isSafe=*/true);
}

Value mlir::tp::nnlinalg::buildLogSoftmax(ImplicitLocOpBuilder &b, Value input,
                                          int64_t dim, Type elementType) {
  RankedTensorType type = getTensorType(input);
  Type computeType = getComputeType(type.getElementType());
  Operand elements = asRows(input, type.getRank(), {});
  Value maximum = buildMaximum(b, elements, type.getShape(), dim, computeType);
  Operand rowMaximum = asRows(maximum, type.getRank(), dim);
  Value sum = buildReduction(
      b, {elements, rowMaximum}, type.getShape(), dim,
      getScalar(b, computeType, 0),
      [](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) {
        return addToSum(b, acc, subtractAndExp(b, args));
      });
  Value logSum =
      buildElementwise(b, getTensorType(sum), ValueRange(sum),
                       [](ImplicitLocOpBuilder &b, ArrayRef<Value> args) {
                         return math::LogOp::create(b, args[0]).getResult();
                       });
  return buildElementwise(
      b, type.clone(elementType),
      {elements, rowMaximum, asRows(logSum, type.getRank(), dim)},
      [](ImplicitLocOpBuilder &b, ArrayRef<Value> args) {
        Value shifted = arith::SubFOp::create(b, args[0], args[1]);
        return arith::SubFOp::create(b, shifted, args[2]).getResult();
      });
}

namespace {
template <typename OpTy, auto build>
struct SoftmaxPattern : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value input = op.getInput();
    Type elementType = getTensorType(input).getElementType();
    rewriter.replaceOp(op, build(b, input, op.getDim(), elementType));
    return success();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

namespace {
/// The rows of a norm: the trailing `normalized` dimensions of the input.
struct Rows {
  Rows(Value input, int64_t normalized) : type(getTensorType(input)) {
    for (int64_t dim = type.getRank() - normalized; dim < type.getRank(); ++dim)
      dims.push_back(dim);
    length = ShapedType::getNumElements(type.getShape().take_back(normalized));
    elements = see(input, {});
  }

  Operand see(Value value, ArrayRef<int64_t> dims) const {
    return asRows(value, type.getRank(), dims);
  }
  Operand seeRows(Value rows) const { return see(rows, dims); }

  Type getComputeType() const {
    return mlir::tp::nnlinalg::getComputeType(type.getElementType());
  }

  RankedTensorType type;
  SmallVector<int64_t> dims;
  int64_t length;
  Operand elements;
};
} // namespace

/// Σ of `body` over each row.
static Value buildRowSum(ImplicitLocOpBuilder &b, const Rows &rows,
                         ArrayRef<Operand> inputs, ElementwiseBody body) {
  return buildReduction(
      b, inputs, rows.type.getShape(), rows.dims,
      getScalar(b, rows.getComputeType(), 0),
      [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) {
        return addToSum(b, acc, body(b, args));
      });
}

/// 1 / sqrt(sum / length + eps)
static Value buildInverseDeviation(ImplicitLocOpBuilder &b, const Rows &rows,
                                   Value squares, double eps) {
  return buildElementwise(
      b, getTensorType(squares), ValueRange(squares),
      [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) {
        Type type = args[0].getType();
        Value mean =
            arith::DivFOp::create(b, args[0], getScalar(b, type, rows.length));
        Value sum = arith::AddFOp::create(b, mean, getScalar(b, type, eps));
        return math::RsqrtOp::create(b, sum).getResult();
      });
}

namespace {
struct LayerNormPattern : OpRewritePattern<nn::LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::LayerNormOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Rows rows(op.getInput(), op.getNormalized());
    auto center = [](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
      return arith::SubFOp::create(b, args[0], args[1]);
    };

    Value sum = buildRowSum(
        b, rows, rows.elements,
        [](ImplicitLocOpBuilder &, ArrayRef<Value> args) { return args[0]; });
    Value mean = buildElementwise(
        b, getTensorType(sum), ValueRange(sum),
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
          Value length = getScalar(b, args[0].getType(), rows.length);
          return arith::DivFOp::create(b, args[0], length);
        });
    // The variance from centered values: Σx² - n·mean² would cancel.
    Value squares = buildRowSum(
        b, rows, {rows.elements, rows.seeRows(mean)},
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
          Value centered = center(b, args);
          return arith::MulFOp::create(b, centered, centered);
        });
    Value inverse =
        buildInverseDeviation(b, rows, squares, op.getEps().convertToDouble());

    SmallVector<Operand> inputs = {rows.elements, rows.seeRows(mean),
                                   rows.seeRows(inverse)};
    if (op.getWeight())
      inputs.push_back(broadcastTo(op.getWeight(), rows.type.getShape()));
    if (op.getBias())
      inputs.push_back(broadcastTo(op.getBias(), rows.type.getShape()));
    rewriter.replaceOp(
        op, buildElementwise(
                b, rows.type, inputs,
                [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
                  Value result =
                      arith::MulFOp::create(b, center(b, args), args[2]);
                  if (op.getWeight())
                    result = arith::MulFOp::create(b, result, args[3]);
                  if (op.getBias())
                    result = arith::AddFOp::create(b, result, args.back());
                  return result;
                }));
    return success();
  }
};

struct RMSNormPattern : OpRewritePattern<nn::RMSNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::RMSNormOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Rows rows(op.getInput(), op.getNormalized());
    Value squares =
        buildRowSum(b, rows, rows.elements,
                    [](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
                      return arith::MulFOp::create(b, args[0], args[0]);
                    });
    Value inverse =
        buildInverseDeviation(b, rows, squares, op.getEps().convertToDouble());
    SmallVector<Operand> inputs = {rows.elements, rows.seeRows(inverse)};
    if (op.getWeight())
      inputs.push_back(broadcastTo(op.getWeight(), rows.type.getShape()));
    rewriter.replaceOp(
        op, buildElementwise(
                b, rows.type, inputs,
                [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
                  Value result = arith::MulFOp::create(b, args[0], args[1]);
                  if (op.getWeight())
                    result = arith::MulFOp::create(b, result, args[2]);
                  return result;
                }));
    return success();
  }
};
} // namespace

void mlir::tp::nnlinalg::populateNormalizationPatterns(
    RewritePatternSet &patterns) {
  patterns.add<SoftmaxPattern<nn::SoftmaxOp, buildSoftmax>,
               SoftmaxPattern<nn::LogSoftmaxOp, buildLogSoftmax>,
               LayerNormPattern, RMSNormPattern>(patterns.getContext());
}
