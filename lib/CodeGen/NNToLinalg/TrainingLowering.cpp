//===- TrainingLowering.cpp - Ops of backward passes and optimizers -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingLowering.h"

#include "LinalgBuilders.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

bool mlir::tp::nnlinalg::isCheapAtRunTime(OpOperand &operand) {
  auto random = dyn_cast<nn::RandomUniformOp>(operand.getOwner());
  return random && operand == random.getStreamMutable();
}

namespace {
/// Philox-4x32-10 (Salmon et al. 2011), the first word of the result.
struct RandomUniformPattern : OpRewritePattern<nn::RandomUniformOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::RandomUniformOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    Value random = buildElementwise(
        b, type, ValueRange{op.getCounter(), op.getIndex(), op.getStream()},
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
          Value word = getPhilox(b, args[1], args[0],
                                 static_cast<uint32_t>(op.getSeed()), args[2]);
          // 24 bits are exact in f32.
          Value bits = arith::ShRUIOp::create(b, word, word32(b, 8));
          Value number = arith::SIToFPOp::create(b, b.getF32Type(), bits);
          return arith::MulFOp::create(b, number,
                                       getScalar(b, b.getF32Type(), 0x1p-24));
        });
    rewriter.replaceOp(op, random);
    return success();
  }

private:
  static Value word32(ImplicitLocOpBuilder &b, uint32_t value) {
    return arith::ConstantOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }

  static Value getPhilox(ImplicitLocOpBuilder &b, Value index, Value counter,
                         uint32_t key0, Value stream) {
    Type i32 = b.getI32Type(), i64 = b.getI64Type();
    Value shift = arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
    auto low = [&](Value value) -> Value {
      return arith::TruncIOp::create(b, i32, value);
    };
    auto high = [&](Value value) -> Value {
      return low(arith::ShRUIOp::create(b, value, shift));
    };
    auto product = [&](Value word, uint32_t factor) -> Value {
      Value wide = arith::ExtUIOp::create(b, i64, word);
      Value by = arith::ConstantOp::create(
          b, b.getI64IntegerAttr(static_cast<int64_t>(factor)));
      return arith::MulIOp::create(b, wide, by);
    };
    auto exclusive = [&](Value x, Value y) -> Value {
      return arith::XOrIOp::create(b, x, y);
    };
    Value key1 = b.createOrFold<arith::TruncIOp>(i32, stream);
    Value c[] = {low(index), high(index), low(counter), high(counter)};
    for (int round = 0; round < 10; ++round) {
      Value p0 = product(c[0], 0xD2511F53), p1 = product(c[2], 0xCD9E8D57);
      Value next0 = exclusive(exclusive(high(p1), c[1]), word32(b, key0));
      Value next2 = exclusive(exclusive(high(p0), c[3]), key1);
      c[0] = next0;
      c[1] = low(p1);
      c[2] = next2;
      c[3] = low(p0);
      key0 += 0x9E3779B9;
      key1 = b.createOrFold<arith::AddIOp>(key1, word32(b, 0xBB67AE85));
    }
    return c[0];
  }
};

struct RecomputePattern : OpRewritePattern<nn::RecomputeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::RecomputeOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<tprt::OpaqueOp>(op, op.getType(),
                                                op.getInput());
    return success();
  }
};

struct StopGradientPattern : OpRewritePattern<nn::StopGradientOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::StopGradientOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, op.getInput());
    return success();
  }
};

/// An optimizer overwrites what it reads: its operands are the initial values
/// of the results.
template <typename OpT, typename DerivedT>
struct OptimizerPattern : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getParameter());
    int64_t rank = type.getRank();
    AffineMap identity =
        AffineMap::getMultiDimIdentityMap(rank, op.getContext());
    AffineMap scalar = AffineMap::get(rank, 0, op.getContext());
    SmallVector<Operand> ins{{op.getGradient(), identity}};
    for (Value value : DerivedT::getScalars(op))
      ins.push_back({value, scalar});
    SmallVector<Operand> outs;
    for (Value value : DerivedT::getState(op))
      outs.push_back({value, identity});
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    rewriter.replaceOp(
        op, buildGeneric(b, ins, outs, iterators,
                         [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
                             ArrayRef<Value> state) {
                           Type element = getComputeType(type.getElementType());
                           auto wide =
                               llvm::map_to_vector(state, [&](Value value) {
                                 return convertScalar(b, value, element);
                               });
                           return DerivedT::update(op, b, args, wide);
                         }));
    return success();
  }
};

Value addF(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
Value mulF(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
Value mulF(ImplicitLocOpBuilder &b, Value x, double y) {
  return mulF(b, x, getScalar(b, x.getType(), y));
}

/// nn.adam, and nn.amsgrad, which has one more state.
template <typename OpT>
struct AdamPattern : OptimizerPattern<OpT, AdamPattern<OpT>> {
  using OptimizerPattern<OpT, AdamPattern<OpT>>::OptimizerPattern;

  static constexpr bool isAMSGrad = std::is_same_v<OpT, nn::AMSGradOp>;

  static SmallVector<Value> getScalars(OpT op) {
    return {op.getLr(), op.getCorrection1(), op.getCorrection2()};
  }
  static SmallVector<Value> getState(OpT op) {
    SmallVector<Value> state{op.getParameter(), op.getAverage(),
                             op.getSquare()};
    if constexpr (isAMSGrad)
      state.push_back(op.getLargest());
    return state;
  }
  static SmallVector<Value> update(OpT op, ImplicitLocOpBuilder &b,
                                   ArrayRef<Value> args,
                                   ArrayRef<Value> state) {
    Value g = args[0], lr = args[1], w = state[0];
    double decay = op.getWeightDecay().convertToDouble();
    double beta1 = op.getBeta1().convertToDouble(),
           beta2 = op.getBeta2().convertToDouble();
    if (decay != 0) {
      if (op.getDecoupled()) {
        Value kept = arith::SubFOp::create(b, getScalar(b, w.getType(), 1),
                                           mulF(b, lr, decay));
        w = mulF(b, w, kept);
      } else {
        g = addF(b, g, mulF(b, w, decay));
      }
    }
    Value average = addF(b, mulF(b, state[1], beta1), mulF(b, g, 1 - beta1));
    Value square =
        addF(b, mulF(b, state[2], beta2), mulF(b, mulF(b, g, g), 1 - beta2));
    SmallVector<Value> next{average, square};
    Value scale = square;
    if constexpr (isAMSGrad) {
      scale = arith::MaximumFOp::create(b, state[3], square);
      next.push_back(scale);
    }
    Value root =
        math::SqrtOp::create(b, arith::DivFOp::create(b, scale, args[3]));
    Value divisor =
        addF(b, root, getScalar(b, w.getType(), op.getEps().convertToDouble()));
    Value rate = arith::DivFOp::create(b, lr, args[2]);
    Value change = mulF(b, rate, arith::DivFOp::create(b, average, divisor));
    next.insert(next.begin(), arith::SubFOp::create(b, w, change));
    return next;
  }
};

struct SGDPattern : OptimizerPattern<nn::SGDOp, SGDPattern> {
  using OptimizerPattern::OptimizerPattern;

  static SmallVector<Value> getScalars(nn::SGDOp op) { return {op.getLr()}; }
  static SmallVector<Value> getState(nn::SGDOp op) {
    return {op.getParameter(), op.getVelocity()};
  }
  static SmallVector<Value> update(nn::SGDOp op, ImplicitLocOpBuilder &b,
                                   ArrayRef<Value> args,
                                   ArrayRef<Value> state) {
    Value g = args[0], w = state[0];
    double decay = op.getWeightDecay().convertToDouble();
    double momentum = op.getMomentum().convertToDouble();
    if (decay != 0)
      g = addF(b, g, mulF(b, w, decay));
    Value velocity = addF(b, mulF(b, state[1], momentum), g);
    Value along =
        op.getNesterov() ? addF(b, g, mulF(b, velocity, momentum)) : velocity;
    return {arith::SubFOp::create(b, w, mulF(b, args[1], along)), velocity};
  }
};
} // namespace

void mlir::tp::nnlinalg::populateTrainingPatterns(RewritePatternSet &patterns) {
  patterns.add<RandomUniformPattern, RecomputePattern, StopGradientPattern,
               AdamPattern<nn::AdamOp>, AdamPattern<nn::AMSGradOp>, SGDPattern>(
      patterns.getContext());
}
