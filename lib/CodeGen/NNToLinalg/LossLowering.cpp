//===- LossLowering.cpp - Cross-entropy and negative log-likelihood -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's formula, with weights w (1 if there are none), targets t that
// aren't ignored, and smoothing ε over C classes:
//
//   nll_i    = -w[t_i] · logp[i, t_i]
//   smooth_i = -Σ_c w[c] · logp[i, c]
//   loss_i   = (1 - ε) · nll_i + ε / C · smooth_i
//   mean     = Σ loss_i / Σ w[t_i]
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "LookupLowering.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

using utils::IteratorType;

static int64_t getClassDim(Value input) {
  return getTensorType(input).getRank() == 1 ? 0 : 1;
}

namespace {
/// Builds a loss over classes. All values are of the compute type.
class LossBuilder {
public:
  /// `weight` may be null.
  LossBuilder(ImplicitLocOpBuilder &b, Value logProbabilities, Value target,
              Value weight, int64_t ignored)
      : b(b), logp(logProbabilities), target(target), weight(weight),
        ignored(ignored), logpType(getTensorType(logp)),
        targetType(getTensorType(target)), classDim(getClassDim(logp)),
        type(getComputeType(logpType.getElementType())) {}

  Value build(nn::LossReduction reduction, double smoothing) {
    auto [losses, weights] = buildTargetLosses();
    if (smoothing != 0)
      losses = buildSmoothed(losses, smoothing);
    if (reduction == nn::LossReduction::None)
      return losses;
    Value sum = buildSum(losses);
    if (reduction == nn::LossReduction::Sum)
      return sum;
    return buildElementwise(
        b, getTensorType(sum), ValueRange{sum, buildSum(weights)},
        [](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
          return arith::DivFOp::create(b, args[0], args[1]);
        });
  }

private:
  int64_t getNumClasses() const { return logpType.getDimSize(classDim); }

  Value isIgnored(ImplicitLocOpBuilder &b, Value index) {
    Value constant = arith::ConstantOp::create(
        b, b.getIntegerAttr(index.getType(), ignored));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, constant);
  }

  /// Σ of all elements.
  Value buildSum(Value values) {
    RankedTensorType valuesType = getTensorType(values);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(valuesType.getRank()));
    if (dims.empty())
      return values;
    return buildReduction(b, asRows(values, valuesType.getRank(), {}),
                          valuesType.getShape(), dims, getScalar(b, type, 0),
                          [](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
                             Value acc) { return addToSum(b, acc, args[0]); });
  }

  /// nll_i, and w[t_i]; both 0 for ignored targets.
  std::pair<Value, Value> buildTargetLosses() {
    int64_t rank = targetType.getRank();
    Operand out = asRows(buildEmpty(b, targetType.clone(type)), rank, {});
    SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
    auto body = [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
                    ArrayRef<Value>) -> SmallVector<Value> {
      Value safe = buildSafeIndex(b, args[0], getNumClasses());
      SmallVector<Value> coordinates;
      for (int64_t i = 0; i < rank; ++i)
        coordinates.push_back(linalg::IndexOp::create(b, i));
      coordinates.insert(coordinates.begin() + classDim, safe);
      auto read = [&](Value tensor, ValueRange coordinates) {
        Value value = tensor::ExtractOp::create(b, tensor, coordinates);
        return convertScalar(b, value, type);
      };
      Value nll = arith::NegFOp::create(b, read(logp, coordinates));
      Value w = getScalar(b, type, 1);
      if (weight) {
        w = read(weight, safe);
        nll = arith::MulFOp::create(b, nll, w);
      }
      Value skip = isIgnored(b, args[0]);
      Value zero = getScalar(b, type, 0);
      return {arith::SelectOp::create(b, skip, zero, nll),
              arith::SelectOp::create(b, skip, zero, w)};
    };
    SmallVector<Value> results =
        buildGeneric(b, asRows(target, rank, {}), {out, out}, iterators, body);
    return {results[0], results[1]};
  }

  /// loss_i
  Value buildSmoothed(Value losses, double smoothing) {
    int64_t rank = logpType.getRank();
    SmallVector<Operand> inputs = {asRows(logp, rank, {})};
    if (weight)
      inputs.push_back(
          {weight, AffineMap::get(rank, 0, b.getAffineDimExpr(classDim))});
    Value smooth = buildReduction(
        b, inputs, logpType.getShape(), classDim, getScalar(b, type, 0),
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) {
          Value term = arith::NegFOp::create(b, args[0]);
          if (weight)
            term = arith::MulFOp::create(b, term, args[1]);
          return addToSum(b, acc, term);
        });
    return buildElementwise(
        b, targetType.clone(type), ValueRange{losses, smooth, target},
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
          auto scale = [&](Value value, double factor) -> Value {
            return arith::MulFOp::create(b, value, getScalar(b, type, factor));
          };
          Value spread = arith::SelectOp::create(
              b, isIgnored(b, args[2]), getScalar(b, type, 0), args[1]);
          return arith::AddFOp::create(
              b, scale(args[0], 1 - smoothing),
              scale(spread, smoothing / getNumClasses()));
        });
  }

  ImplicitLocOpBuilder &b;
  Value logp, target, weight;
  int64_t ignored;
  RankedTensorType logpType, targetType;
  int64_t classDim;
  Type type;
};
} // namespace

/// Replaces `op`, whose log-probabilities `getLogProbabilities` builds.
template <typename OpTy>
static LogicalResult
replaceLoss(OpTy op, PatternRewriter &rewriter, double smoothing,
            function_ref<Value(ImplicitLocOpBuilder &)> getLogProbabilities) {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  RankedTensorType type = getTensorType(op.getResult());
  int64_t numClasses =
      getTensorType(op.getInput()).getDimSize(getClassDim(op.getInput()));
  buildIndexCheck(b, op, op.getTarget(), numClasses, op.getIgnoreIndex());
  if (numClasses == 0) {
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, cast<TypedAttr>(rewriter.getZeroAttr(type)));
    return success();
  }
  LossBuilder loss(b, getLogProbabilities(b), op.getTarget(), op.getWeight(),
                   op.getIgnoreIndex());
  Value result = loss.build(op.getReduction(), smoothing);
  rewriter.replaceOp(op, buildCast(b, result, type.getElementType()));
  return success();
}

namespace {
struct CrossEntropyPattern : OpRewritePattern<nn::CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::CrossEntropyOp op,
                                PatternRewriter &rewriter) const override {
    Value input = op.getInput();
    return replaceLoss(
        op, rewriter, op.getLabelSmoothing().convertToDouble(),
        [&](ImplicitLocOpBuilder &b) {
          Type type = getComputeType(getTensorType(input).getElementType());
          return buildLogSoftmax(b, input, getClassDim(input), type);
        });
  }
};

struct ClassSumsPattern : OpRewritePattern<nn::ClassSumsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ClassSumsOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, op.decompose(rewriter));
    return success();
  }
};

struct NLLLossPattern : OpRewritePattern<nn::NLLLossOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::NLLLossOp op,
                                PatternRewriter &rewriter) const override {
    return replaceLoss(op, rewriter, 0,
                       [&](ImplicitLocOpBuilder &) { return op.getInput(); });
  }
};
} // namespace

void mlir::tp::nnlinalg::populateLossPatterns(RewritePatternSet &patterns) {
  patterns.add<ClassSumsPattern, CrossEntropyPattern, NLLLossPattern>(
      patterns.getContext());
}
