//===- AtenConvolution.cpp - convolutions, windows ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

using Sizes = llvm::SmallVector<int64_t>;

static Sizes concat(ArrayRef<int64_t> first, ArrayRef<int64_t> second,
                    ArrayRef<int64_t> third = {}) {
  Sizes shape(first);
  llvm::append_range(shape, second);
  llvm::append_range(shape, third);
  return shape;
}

/// The padding at the beginning. The results' shape says what is at the end;
/// with "same" that may be one more.
static Sizes paddingOf(AtenCall &call, ArrayRef<int64_t> kernel,
                       ArrayRef<int64_t> dilation) {
  int64_t n = kernel.size();
  if (!call.isString("padding"))
    return call.integersPerDim("padding", n);
  Sizes padding(n, 0);
  if (call.string("padding") == "same")
    for (auto [i, size] : llvm::enumerate(kernel))
      padding[i] = dilation[i] * (size - 1) / 2;
  return padding;
}

/// Sets the result, `result` plus the bias, if there is one.
static LogicalResult addBias(AtenCall &call, ImportBuilder &b, Value result,
                             int64_t n) {
  if (call.has("bias")) {
    Value bias = castTo(b, call.tensor("bias"), elementOf(result));
    result = add(b, result,
                 b.reshape(bias, concat({shapeOf(bias)[0]}, Sizes(n, 1))));
  }
  return call.result(castTo(b, result, call.resultElement()));
}

/// Groups of channels become a dimension before the channels.
static LogicalResult convolution(AtenCall &call, ImportBuilder &b) {
  Value input = call.tensor("input"), weight = call.tensor("weight");
  ArrayRef<int64_t> filter = shapeOf(weight);
  int64_t n = filter.size() - 2, groups = call.integer("groups");
  ArrayRef<int64_t> kernel = filter.take_back(n), spatial = shapeOf(input);
  // An input without a batch is a batch of one.
  int64_t batch = spatial.size() == filter.size() ? spatial[0] : 1;
  spatial = spatial.take_back(n);
  Sizes dilation = call.integersPerDim("dilation", n);
  Sizes groupsOf = groups == 1 ? Sizes() : Sizes{groups};
  input =
      b.reshape(input, concat(concat({batch}, groupsOf), {filter[1]}, spatial));
  weight = b.reshape(weight,
                     concat(groupsOf, {filter[0] / groups, filter[1]}, kernel));
  Sizes shape = concat(concat({batch}, groupsOf), {filter[0] / groups},
                       call.resultShape().take_back(n));
  Value result =
      nn::ConvolutionOp::create(b, typeOf(input).clone(shape), input, weight,
                                call.integersPerDim("stride", n),
                                paddingOf(call, kernel, dilation), dilation);
  return addBias(call, b, b.reshape(result, call.resultShape()), n);
}

/// Each element of the input times the weight of its channel is a window of the
/// result; windows that overlap are added up. The products aren't rounded to 16
/// bits before that.
static LogicalResult transposedConvolution(AtenCall &call, ImportBuilder &b) {
  Value input = b.widen(call.tensor("input")),
        weight = b.widen(call.tensor("weight"));
  ArrayRef<int64_t> filter = shapeOf(weight);
  int64_t n = filter.size() - 2, groups = call.integer("groups");
  ArrayRef<int64_t> kernel = filter.take_back(n), positions = shapeOf(input);
  Sizes lead;
  if (positions.size() == filter.size())
    lead.push_back(positions[0]);
  positions = positions.take_back(n);
  Sizes groupsOf = groups == 1 ? Sizes() : Sizes{groups};
  llvm::append_range(lead, groupsOf);
  int64_t channels = filter[0] / groups, outputs = filter[1];
  int64_t elements = ShapedType::getNumElements(kernel);
  Value columns =
      matmul(b,
             transposeLast(b, b.reshape(weight, concat(groupsOf, {channels},
                                                       {outputs * elements}))),
             b.reshape(input, concat(lead, {channels},
                                     {ShapedType::getNumElements(positions)})));
  lead.push_back(outputs);
  Value windows = b.reshape(columns, concat(lead, kernel, positions));
  Sizes shape = concat(lead, call.resultShape().take_back(n));
  Value result = nn::FoldOp::create(b, typeOf(windows).clone(shape), windows,
                                    call.integersPerDim("stride", n),
                                    call.integersPerDim("padding", n),
                                    call.integersPerDim("dilation", n));
  return addBias(call, b, b.reshape(result, call.resultShape()), n);
}

/// The general op; traces hold it instead of conv2d and others.
static LogicalResult anyConvolution(AtenCall &call, ImportBuilder &b) {
  return call.flag("transposed") ? transposedConvolution(call, b)
                                 : convolution(call, b);
}

/// How many windows of `size` elements each dimension has.
static Sizes countsOf(ArrayRef<int64_t> spatial, ArrayRef<int64_t> size,
                      ArrayRef<int64_t> stride, ArrayRef<int64_t> padding,
                      ArrayRef<int64_t> dilation) {
  Sizes counts;
  for (auto [i, extent] : llvm::enumerate(spatial))
    counts.push_back(
        (extent + 2 * padding[i] - dilation[i] * (size[i] - 1) - 1) /
            stride[i] +
        1);
  return counts;
}

/// nn.Unfold: the windows of an image, as columns.
static LogicalResult imageToColumns(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  Sizes size = call.integersPerDim("kernel_size", 2),
        stride = call.integersPerDim("stride", 2),
        padding = call.integersPerDim("padding", 2),
        dilation = call.integersPerDim("dilation", 2);
  ArrayRef<int64_t> spatial = shapeOf(self).take_back(2);
  Sizes shape = concat(shapeOf(self).drop_back(2), size,
                       countsOf(spatial, size, stride, padding, dilation));
  Value windows =
      nn::WindowsOp::create(b, typeOf(self).clone(shape), self, stride, padding,
                            dilation, llvm::APFloat(0.0));
  return call.result(b.reshape(windows, call.resultShape()));
}

/// nn.Fold: the sum of such columns at their positions.
static LogicalResult columnsToImage(AtenCall &call, ImportBuilder &b) {
  Sizes size = call.integersPerDim("kernel_size", 2),
        stride = call.integersPerDim("stride", 2),
        padding = call.integersPerDim("padding", 2),
        dilation = call.integersPerDim("dilation", 2);
  ArrayRef<int64_t> image = call.resultShape();
  Sizes shape =
      concat(image.drop_back(2), size,
             countsOf(image.take_back(2), size, stride, padding, dilation));
  Value windows = b.reshape(call.tensor("self"), shape);
  return call.result(nn::FoldOp::create(b, call.resultType(), windows, stride,
                                        padding, dilation));
}

/// Tensor.unfold: windows along one dimension, their elements at the end.
static LogicalResult unfold(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (!isFloat(self))
    return call.unsupported("of integers");
  int64_t size = call.integer("size"), rank = rankOf(self);
  if (rank == 0)
    return call.result(b.reshape(self, call.resultShape()));
  int64_t dim = call.dim("dimension", rank);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  order.erase(order.begin() + dim);
  order.push_back(dim);
  Value last = b.transpose(self, order);
  Sizes shape(shapeOf(last));
  shape.back() = size;
  shape.push_back(call.resultShape()[dim]);
  Value windows = nn::WindowsOp::create(
      b, typeOf(self).clone(shape), last,
      ArrayRef<int64_t>{call.integer("step")}, ArrayRef<int64_t>{0},
      ArrayRef<int64_t>{1}, llvm::APFloat(0.0));
  // (…, element, position) → (…, position, …, element)
  Sizes back = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  back.insert(back.begin() + dim, rank);
  back.push_back(rank - 1);
  return call.result(b.transpose(windows, back));
}

void mlir::tp::addConvolutionOps(AtenTable &table) {
  for (StringRef name : {"conv1d", "conv2d", "conv3d", "_convolution_mode"})
    table[name] = {convolution,
                   "input weight bias stride padding dilation groups"};
  for (StringRef name :
       {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
    table[name] = {.run = transposedConvolution,
                   .reads = "input weight bias stride padding groups dilation",
                   .inType = "output_padding"};
  table["convolution"] = {
      .run = anyConvolution,
      .reads = "input weight bias stride padding dilation transposed groups",
      .inType = "output_padding"};
  table["_convolution"] = {
      .run = anyConvolution,
      .reads = "input weight bias stride padding dilation transposed groups",
      .inType = "output_padding",
      .noEffect = "benchmark deterministic cudnn_enabled allow_tf32"};
  table["im2col"] = {imageToColumns,
                     "self kernel_size dilation padding stride"};
  table["col2im"] = {.run = columnsToImage,
                     .reads = "self kernel_size dilation padding stride",
                     .inType = "output_size"};
  table["unfold"] = {unfold, "self dimension size step"};
}
