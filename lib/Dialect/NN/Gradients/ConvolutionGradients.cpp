//===- ConvolutionGradients.cpp - convolutions by products, gradients -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With its windows as columns, a convolution is a product of matrices, for each
// image b and group g:
//
//   result (b, g, m, P) = weight (g, m, cK) · columns (b, g, cK, P)
//
// where P are all positions of windows and K are all elements of one. So its
// gradients are products as well.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::GradientBuilder;

static SmallVector<int64_t> concat(ArrayRef<int64_t> first,
                                   ArrayRef<int64_t> second,
                                   ArrayRef<int64_t> third = {}) {
  SmallVector<int64_t> shape(first);
  llvm::append_range(shape, second);
  llvm::append_range(shape, third);
  return shape;
}

namespace {
class ColumnForm {
public:
  ColumnForm(ImplicitLocOpBuilder &b, ConvolutionOp op)
      : b(b), op(op), n(op.getStride().size()) {
    ArrayRef<int64_t> input = shapeOf(op.getInput());
    lead.assign(input.begin(), input.end() - n - 1);
    channels = input[lead.size()];
    kernel = shapeOf(op.getWeight()).take_back(n);
    positions = shapeOf(op.getResult()).take_back(n);
    columns = channels * ShapedType::getNumElements(kernel);
    outputs = shapeOf(op.getResult())[lead.size()];
    count = ShapedType::getNumElements(positions);
  }

  Value getResult() {
    Value product =
        matmul(b, getWeight(),
               reshape(b, getWindows(), concat(lead, {columns, count})));
    return reshape(b, product, shapeOf(op.getResult()));
  }

  /// A convolution of `g` if all strides are 1. Otherwise the sum of the
  /// windows' gradients, which are a pointwise convolution of `g`: no spatial
  /// dimensions are merged, so they may be split.
  Value getInputGradient(Value g) {
    if (std::optional<SmallVector<int64_t>> padding = getTransposedPadding())
      return ConvolutionOp::create(b, op.getInput().getType(), g,
                                   getTransposedWeight(), op.getStride(),
                                   *padding, op.getDilation());
    SmallVector<int64_t> shape = concat(lead, {columns}, positions);
    SmallVector<int64_t> ones(n, 1), zeros(n, 0);
    Value weight = transposeLast(b, getWeight());
    Value windows = ConvolutionOp::create(
        b, typeOf(g).clone(shape), g,
        reshape(b, weight, concat(shapeOf(weight), ones)), ones, zeros, ones);
    return FoldOp::create(b, op.getInput().getType(),
                          reshape(b, windows, getWindowShape()), op.getStride(),
                          op.getPadding(), op.getDilation());
  }

  /// The sum over all images and positions. With groups, it is a product for
  /// each image, whose dimensions of positions are one.
  Value getWeightGradient(Value g) {
    Value windows = getWindows();
    ArrayRef<int64_t> groups = ArrayRef(lead).drop_front();
    if (groups.empty()) {
      Value rows = reshape(b, windows, concat(lead, {columns}, positions));
      Value product =
          OuterSumOp::create(b, moveChannelsLast(g), moveChannelsLast(rows));
      return reshape(b, product, shapeOf(op.getWeight()));
    }
    Value product = matmul(
        b, reshape(b, g, concat(lead, {outputs, count})),
        transposeLast(b, reshape(b, windows, concat(lead, {columns, count}))));
    Value sum = reduce(b, ReduceKind::Sum, product, 0, /*keepdim=*/false);
    return reshape(b, sum, shapeOf(op.getWeight()));
  }

private:
  /// The padding of the convolution that is the input's gradient, whose windows
  /// end where those of the op begin; nullopt if it has none.
  std::optional<SmallVector<int64_t>> getTransposedPadding() {
    SmallVector<int64_t> padding;
    for (int64_t i = 0; i < n; ++i) {
      padding.push_back(op.getDilation()[i] * (kernel[i] - 1) -
                        op.getPadding()[i]);
      if (op.getStride()[i] != 1 || padding.back() < 0)
        return std::nullopt;
    }
    return padding;
  }

  /// (g, m, c, k…) → (g, c, m, k…), with the elements of windows in reverse.
  Value getTransposedWeight() {
    ArrayRef<int64_t> groups = ArrayRef(lead).drop_front();
    int64_t elements = columns / channels;
    Value weight = reshape(b, op.getWeight(),
                           concat(groups, {outputs, channels, elements}));
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(weight)));
    std::swap(permutation[groups.size()], permutation[groups.size() + 1]);
    weight = transpose(b, weight, permutation);
    if (elements > 1) {
      auto order =
          llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, elements)));
      Value index = ConstantOp::create(
          b, DenseElementsAttr::get(
                 RankedTensorType::get({elements}, b.getI64Type()),
                 ArrayRef<int64_t>(order)));
      weight = IndexSelectOp::create(b, weight, index, rankOf(weight) - 1);
    }
    return reshape(b, weight,
                   concat(concat(groups, {channels, outputs}), kernel));
  }

  /// Whether each element of the input is a window.
  bool isPointwise() {
    auto areAll = [](ArrayRef<int64_t> list, int64_t value) {
      return llvm::all_of(list, [&](int64_t entry) { return entry == value; });
    };
    return areAll(kernel, 1) && areAll(op.getStride(), 1) &&
           areAll(op.getPadding(), 0) &&
           shapeOf(op.getInput()).take_back(n) == positions;
  }

  SmallVector<int64_t> getWindowShape() {
    return concat(concat(lead, {channels}), kernel, positions);
  }

  Value getWindows() {
    RankedTensorType type = op.getInput().getType();
    if (isPointwise())
      return reshape(b, op.getInput(), getWindowShape());
    return WindowsOp::create(b, type.clone(getWindowShape()), op.getInput(),
                             op.getStride(), op.getPadding(), op.getDilation(),
                             llvm::APFloat(0.0));
  }

  Value getWeight() {
    return reshape(b, op.getWeight(),
                   concat(ArrayRef(lead).drop_front(), {outputs, columns}));
  }

  /// (b, m, P…) → (b, P…, m)
  Value moveChannelsLast(Value value) {
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(2, rankOf(value)));
    permutation.insert(permutation.begin(), 0);
    permutation.push_back(1);
    return transpose(b, value, permutation);
  }

  ImplicitLocOpBuilder &b;
  ConvolutionOp op;
  int64_t n;
  SmallVector<int64_t> lead; ///< b, or b and g
  int64_t channels, outputs, columns, count;
  ArrayRef<int64_t> kernel, positions;
};
} // namespace

bool ConvolutionOp::isDepthwise() {
  return hasGroups() && shapeOf(getWeight())[1] == 1 &&
         shapeOf(getWeight())[2] == 1;
}

Value ConvolutionOp::decompose(ImplicitLocOpBuilder &b) {
  return ColumnForm(b, *this).getResult();
}

void ConvolutionOp::buildGradient(GradientBuilder &b) {
  ColumnForm form(b, *this);
  if (b.wants(0))
    b.setGradient(0, form.getInputGradient(b.getGradient()));
  if (b.wants(1))
    b.setGradient(1, form.getWeightGradient(b.getGradient()));
}

void WindowsOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, FoldOp::create(b, getInput().getType(), b.getGradient(),
                                  getStride(), getPadding(), getDilation()));
}

void FoldOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, WindowsOp::create(b, getInput().getType(), b.getGradient(),
                                     getStride(), getPadding(), getDilation(),
                                     llvm::APFloat(0.0)));
}

/// Each window's gradient at the elements that it depends on: at all of a sum,
/// at the first largest one of a maximum.
void PoolOp::buildGradient(GradientBuilder &b) {
  RankedTensorType type = getInput().getType();
  size_t n = getStride().size();
  ArrayRef<int64_t> lead = type.getShape().drop_back(n),
                    positions = getType().getShape().take_back(n);
  SmallVector<int64_t> windows = concat(lead, getSize(), positions);
  // The elements of a window as one dimension.
  Value g = reshape(b, b.getGradient(), concat(lead, {1}, positions));
  int64_t size = ShapedType::getNumElements(getSize());
  if (getKind() == ReduceKind::Max) {
    Value elements = WindowsOp::create(
        b, type.clone(windows), getInput(), getStride(), getPadding(),
        getDilation(), llvm::APFloat(-std::numeric_limits<double>::infinity()));
    Value largest = ArgMaxOp::create(
        b, reshape(b, elements, concat(lead, {size}, positions)),
        static_cast<int64_t>(lead.size()), /*keepdim=*/true);
    SmallVector<int64_t> column(n + 1, 1);
    column[0] = size;
    Value isLargest = compare(b, ComparePredicate::EQ, largest,
                              iota(b, column, 0, b.getI64Type()));
    g = keep(b, isLargest, g);
  } else {
    g = broadcast(b, g, concat(lead, {size}, positions));
  }
  b.setGradient(0, FoldOp::create(b, type, reshape(b, g, windows), getStride(),
                                  getPadding(), getDilation()));
}
