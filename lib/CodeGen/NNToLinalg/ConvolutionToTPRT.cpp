//===- ConvolutionToTPRT.cpp - Convolutions as calls ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worked example: a batch normalization with known statistics after a
// convolution,
//
//   relu((conv(x, w) - mean) * scale + shift + y)
//
// is relu(conv(x, w) * scale + (shift - mean * scale) + y).
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tprt/abi.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTCONVOLUTIONTOTPRT
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::tp::nnlinalg;

namespace {

/// A convolution and the ops after it that its call computes.
class ConvolutionCall {
public:
  /// `keepsBits`: the result has the bits that separate ops would give.
  ConvolutionCall(ConvolutionOp op, bool keepsBits)
      : op(op), keepsBits(keepsBits), value(op.getResult()),
        isNarrow(op.getType().getElementTypeBitWidth() < 32) {
    size_t n = op.getStride().size();
    ArrayRef<int64_t> weight = op.getWeight().getType().getShape();
    channels = ShapedType::getNumElements(weight.drop_back(n + 1));
    shape = {op.getType().getDimSize(0), channels};
    llvm::append_range(shape, op.getType().getShape().take_back(n));
    while (value.hasOneUse() && absorb(*value.getUsers().begin())) {
      absorbed.push_back(*value.getUsers().begin());
      value = absorbed.back()->getResult(0);
    }
  }

  void replace(RewriterBase &rewriter) {
    Operation *last = value.getDefiningOp();
    SmallVector<Location> locations{op.getLoc()};
    for (Operation *next : absorbed)
      locations.push_back(next->getLoc());
    rewriter.setInsertionPoint(last);
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    size_t n = op.getStride().size();
    auto merge = [&](Value tensor, ArrayRef<int64_t> first) {
      SmallVector<int64_t> shape(first);
      llvm::append_range(shape, expr::shapeOf(tensor).take_back(n));
      return expr::reshape(b, tensor, shape);
    };
    ArrayRef<int64_t> ofWeight = op.getWeight().getType().getShape();
    int64_t inChannels = ofWeight[ofWeight.size() - n - 1],
            groups = op.hasGroups() ? ofWeight[0] : 1;
    Value input = merge(op.getInput(), {shape[0], groups * inChannels});
    Value weight = merge(op.getWeight(), {channels, inChannels});

    Value scale, bias;
    for (const Step &step : steps) {
      b.setLoc(step.op->getLoc());
      Value operand = asVector(b, step.operand);
      if (isa<MulOp>(step.op)) {
        scale = scale ? expr::mul(b, scale, operand) : operand;
        bias = bias ? expr::mul(b, bias, operand) : bias;
      } else if (isa<SubOp>(step.op)) {
        bias = bias ? expr::sub(b, bias, operand) : expr::neg(b, operand);
      } else {
        bias = bias ? expr::add(b, bias, operand) : operand;
      }
    }
    b.setLoc(b.getFusedLoc(locations));
    auto type = op.getType().clone(shape);
    if (addend)
      addend = expr::reshape(b, addend, shape);
    auto call = tprt::ConvolutionOp::create(
        b, type, input, weight, scale, bias, addend, buildEmpty(b, type),
        activation ? tprt::ActivationAttr::get(b.getContext(), *activation)
                   : nullptr,
        groups, op.getStride(), op.getPadding(), op.getDilation());
    rewriter.replaceOp(
        last, expr::reshape(b, call.getResult(0), expr::shapeOf(value)));
    absorbed.insert(absorbed.begin(), op);
    for (Operation *replaced : llvm::reverse(ArrayRef(absorbed).drop_back()))
      rewriter.eraseOp(replaced);
  }

private:
  /// What is added to each channel, or multiplied with it.
  struct Step {
    Operation *op;
    Value operand;
  };

  /// Whether the call can compute `next`, the only reader of `value`.
  bool absorb(Operation *next) {
    if (activation || next->getNumResults() != 1)
      return false;
    if (auto reshape = dyn_cast<ReshapeOp>(next))
      return mergesGroups(reshape);
    if (next->getResult(0).getType() != value.getType())
      return false;
    return TypeSwitch<Operation *, bool>(next)
        .Case<AddOp, SubOp, MulOp>(
            [&](auto binary) { return absorbBinary(binary); })
        .Case([&](ReluOp) { return activate(tprt::Activation::Relu); })
        .Case([&](GeluOp gelu) {
          return !keepsBits &&
                 activate(gelu.getTanh() ? tprt::Activation::GeluTanh
                                         : tprt::Activation::Gelu);
        })
        .Case([&](SiluOp) {
          return !keepsBits && activate(tprt::Activation::Silu);
        })
        .Default(false);
  }

  bool activate(tprt::Activation function) {
    activation = function;
    return true;
  }

  /// Whether `reshape` gives groups and their channels one dimension.
  bool mergesGroups(ReshapeOp reshape) {
    return value == op.getResult() && op.hasGroups() &&
           reshape.getType().getShape() == ArrayRef(shape);
  }

  bool absorbBinary(Operation *binary) {
    bool isFirst = binary->getOperand(0) == value;
    Value other = binary->getOperand(isFirst ? 1 : 0);
    if (!isFirst && isa<SubOp>(binary))
      return false;
    if (isOfChannels(other)) {
      // Factors and addends of channels come before the addend, and 16 bits
      // round once.
      bool changesBits = isa<MulOp>(binary);
      if (addend || (changesBits && (keepsBits || isNarrow)) ||
          (isNarrow && !steps.empty()))
        return false;
      steps.push_back({binary, other});
      return true;
    }
    if (!isa<AddOp>(binary) || addend || other.getType() != value.getType() ||
        (keepsBits && isNarrow))
      return false;
    addend = other;
    return true;
  }

  /// Whether `operand`, which is broadcast to `value`, has one element for each
  /// channel, or one for all.
  bool isOfChannels(Value operand) const {
    ArrayRef<int64_t> sizes = expr::shapeOf(operand);
    if (ShapedType::getNumElements(sizes) == 1)
      return true;
    // Sizes correspond from the last one on.
    size_t dims = shape.size() - 1;
    return expr::rankOf(value) == static_cast<int64_t>(shape.size()) &&
           sizes.size() >= dims && sizes[sizes.size() - dims] == channels &&
           ShapedType::getNumElements(sizes) == channels;
  }

  Value asVector(ImplicitLocOpBuilder &b, Value operand) const {
    if (expr::typeOf(operand).getNumElements() == channels)
      return expr::reshape(b, operand, {channels});
    return expr::broadcast(b, expr::reshape(b, operand, {1}), {channels});
  }

  ConvolutionOp op;
  bool keepsBits;
  int64_t channels;           ///< of the output, those of all groups
  SmallVector<int64_t> shape; ///< of the output, without groups
  Value value;                ///< the last one that is computed
  bool isNarrow;
  SmallVector<Operation *> absorbed;
  SmallVector<Step> steps;
  Value addend;
  std::optional<tprt::Activation> activation;
};

struct ConvertConvolutionToTPRT
    : tp::impl::ConvertConvolutionToTPRTBase<ConvertConvolutionToTPRT> {
  using ConvertConvolutionToTPRTBase::ConvertConvolutionToTPRTBase;

  void runOnOperation() override {
    SmallVector<ConvolutionOp> convolutions;
    bool updates = false, hasLoss = false;
    getOperation()->walk([&](Operation *op) {
      updates |= isa<tp::AssignOpInterface>(op);
      if (auto function = dyn_cast<FunctionOpInterface>(op))
        for (unsigned i = 0; i < function.getNumResults(); ++i) {
          auto name =
              function.getResultAttrOfType<StringAttr>(i, tp::kNameAttr);
          hasLoss |= name && name == "loss";
        }
      if (auto convolution = dyn_cast<ConvolutionOp>(op))
        if (!convolution.isDepthwise() &&
            convolution.getStride().size() <= TPRT_CONVOLUTION_DIMS)
          convolutions.push_back(convolution);
    });
    IRRewriter rewriter(&getContext());
    for (ConvolutionOp op : convolutions)
      ConvolutionCall(op, /*keepsBits=*/updates && hasLoss).replace(rewriter);
  }
};

} // namespace
