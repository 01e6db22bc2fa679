//===- ConvolutionOp.cpp - tprt.convolution -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DenseBuffers.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tprt/abi.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tprt;

static ShapedType getShaped(Value value) {
  return cast<ShapedType>(value.getType());
}

int64_t ConvolutionOp::getFlops() {
  // A product for each element of the output and each of its channel's weight.
  ArrayRef<int64_t> weight = getShaped(getWeight()).getShape();
  return 2 * getShaped(getOutput()).getNumElements() *
         ShapedType::getNumElements(weight.drop_front());
}

int64_t ConvolutionOp::getTouchedBytes() {
  return llvm::sum_of(
      llvm::map_range(getOperation()->getOperandTypes(), tp::getTensorBytes),
      int64_t(0));
}

LogicalResult ConvolutionOp::verify() {
  Type element = getElementTypeOrSelf(getInput().getType());
  if (!isa<Float32Type, Float64Type, Float16Type, BFloat16Type>(element))
    return emitOpError("computes f32, f64, f16 and bf16, not ") << element;
  for (Type type : getOperation()->getOperandTypes())
    if (getElementTypeOrSelf(type) != element)
      return emitOpError("has operands of ")
             << element << " and " << getElementTypeOrSelf(type);
  size_t n = getStride().size();
  if (n < 1 || n > TPRT_CONVOLUTION_DIMS)
    return emitOpError("needs 1 to ")
           << static_cast<int>(TPRT_CONVOLUTION_DIMS)
           << " spatial dimensions, has strides of " << n;
  auto isList = [&](ArrayRef<int64_t> list, int64_t lowest) {
    return list.size() == n && llvm::all_of(list, [&](int64_t entry) {
             return entry >= lowest && entry <= INT32_MAX;
           });
  };
  if (!isList(getStride(), 1) || !isList(getPadding(), 0) ||
      !isList(getDilation(), 1))
    return emitOpError("needs a positive stride and dilation and a padding of "
                       "at least 0 for each of ")
           << n << " spatial dimensions";
  ShapedType input = getShaped(getInput()), weight = getShaped(getWeight()),
             output = getShaped(getOutput());
  int64_t rank = static_cast<int64_t>(n) + 2, groups = getGroups();
  if (input.getRank() != rank || weight.getRank() != rank ||
      output.getRank() != rank || groups < 1 ||
      weight.getDimSize(0) % groups != 0 ||
      input.getDimSize(1) != groups * weight.getDimSize(1) ||
      output.getDimSize(0) != input.getDimSize(0) ||
      output.getDimSize(1) != weight.getDimSize(0))
    return emitOpError("needs input (b, g * c, s…), weight (g * m, c, k…) and "
                       "output (b, g * m, p…) for g = ")
           << groups << " groups and " << n << " spatial dimensions, found "
           << input << ", " << weight << " and " << output;
  for (auto [name, value] :
       {std::pair("scale", getScale()), std::pair("bias", getBias())})
    if (value && getShaped(value).getShape() != weight.getShape().take_front(1))
      return emitOpError("needs a ") << name << " of " << weight.getDimSize(0)
                                     << " elements, found " << value.getType();
  if (getAddend() && getShaped(getAddend()).getShape() != output.getShape())
    return emitOpError("needs an addend like the output ")
           << output << ", found " << getAddend().getType();
  return success();
}

LogicalResult
ConvolutionOp::bufferize(RewriterBase &rewriter,
                         const bufferization::BufferizationOptions &options,
                         bufferization::BufferizationState &state) {
  return bufferizeDense(*this, rewriter, options, state);
}
