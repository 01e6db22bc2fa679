//===- NNWindows.cpp - rules and constraints of ops with windows ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/NN.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nn;
using tp::LinearSet;
using tp::ShardingRule;

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// An einsum over the op's spatial dimensions. In `spec`, K and P stand for as
/// many elements and positions of windows of `size` elements. P also stands for
/// the dimensions that have the windows: they are split with the positions.
template <typename OpT>
static ShardingRule getWindowRule(OpT op, ArrayRef<int64_t> size,
                                  StringRef spec, bool isFold = false) {
  size_t n = size.size();
  std::string text;
  for (char letter : spec)
    if (letter == 'K' || letter == 'P')
      for (size_t i = 0; i < n; ++i)
        text += " " + (letter + std::to_string(i));
    else
      text += letter;
  ShardingRule rule = ShardingRule::einsum(op, text);
  auto input = cast<RankedTensorType>(op->getOperand(0).getType()),
       result = cast<RankedTensorType>(op->getResult(0).getType());
  for (size_t i = 0; i < n; ++i) {
    rule.whole("K" + std::to_string(i));
    tp::Halo halo;
    halo.operandDim = input.getRank() - n + i;
    halo.resultDim = result.getRank() - n + i;
    halo.operandSize = input.getDimSize(halo.operandDim);
    halo.resultSize = result.getDimSize(halo.resultDim);
    halo.stride = op.getStride()[i];
    halo.padding = op.getPadding()[i];
    halo.extent = op.getDilation()[i] * (size[i] - 1) + 1;
    halo.isTransposed = isFold;
    rule.halo(halo);
    rule.factors[rule.halos.back().factor].size =
        isFold ? halo.operandSize : halo.resultSize;
  }
  return rule;
}

ShardingRule ConvolutionOp::getConvolutionRule() {
  ArrayRef<int64_t> weight = getWeight().getType().getShape();
  ShardingRule rule =
      getWindowRule(*this, weight.take_back(getStride().size()),
                    hasGroups() ? "(b g c P, g m c K) -> (b g m P)"
                                : "(b c P, m c K) -> (b m P)");
  // A product for each element of the result and each of the weight of its
  // channel.
  rule.flops = 2.0 * static_cast<double>(getType().getNumElements()) *
               static_cast<double>(ShapedType::getNumElements(
                   weight.drop_front(hasGroups() ? 2 : 1)));
  return rule.linear({LinearSet{0}, LinearSet{1}});
}

ShardingRule WindowsOp::getWindowsRule() {
  size_t n = getStride().size();
  ShardingRule rule =
      getWindowRule(*this, getType().getShape().take_back(2 * n).take_front(n),
                    "(l.. P) -> (l.. K P)");
  // Other elements outside would be added once per rank.
  return getOutside().isZero() ? rule.linear({LinearSet{0}}) : rule;
}

ShardingRule FoldOp::getFoldRule() {
  size_t n = getStride().size();
  return getWindowRule(
             *this,
             getInput().getType().getShape().take_back(2 * n).take_front(n),
             "(l.. K P) -> (l.. P)", /*isFold=*/true)
      .linear({LinearSet{0}});
}

ShardingRule PoolOp::getPoolRule() {
  ShardingRule rule = getWindowRule(*this, getSize(), "(l.. P) -> (l.. P)");
  return getKind() == ReduceKind::Sum ? rule.linear({LinearSet{0}}) : rule;
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// `list` needs an entry of at least `lowest` for each of `n` dimensions.
static LogicalResult verifyEntries(Operation *op, StringRef name,
                                   ArrayRef<int64_t> list, size_t n,
                                   int64_t lowest) {
  if (list.size() == n && llvm::all_of(list, [&](int64_t entry) {
        return entry >= lowest && entry <= INT32_MAX;
      }))
    return success();
  return op->emitOpError() << name << " needs " << n << " entries from "
                           << lowest << " to " << INT32_MAX << ", found ["
                           << list << "]";
}

template <typename OpT>
static LogicalResult verifyWindowAttrs(OpT op) {
  size_t n = op.getStride().size();
  if (n == 0)
    return op.emitOpError("stride needs an entry for each spatial dimension, "
                          "found none");
  if (failed(verifyEntries(op, "stride", op.getStride(), n, 1)) ||
      failed(verifyEntries(op, "padding", op.getPadding(), n, 0)))
    return failure();
  return verifyEntries(op, "dilation", op.getDilation(), n, 1);
}

/// The last dimensions of `input` are padded and have `counts` windows of `size`
/// elements.
template <typename OpT>
static LogicalResult verifyPadded(OpT op, RankedTensorType input,
                                  ArrayRef<int64_t> size,
                                  ArrayRef<int64_t> counts) {
  size_t n = size.size();
  ArrayRef<int64_t> spatial = input.getShape().take_back(n);
  auto asDouble = [](int64_t number) { return static_cast<double>(number); };
  double elements = 1;
  for (int64_t extent : input.getShape().drop_back(n))
    elements *= asDouble(extent);
  for (size_t i = 0; i < n; ++i) {
    double last = asDouble(op.getStride()[i]) * asDouble(counts[i] - 1) +
                  asDouble(op.getDilation()[i]) * asDouble(size[i] - 1);
    // One empty dimension doesn't excuse the others.
    elements =
        std::max(elements, 1.0) *
        std::max(last + 1, asDouble(spatial[i]) + asDouble(op.getPadding()[i]));
  }
  constexpr double limit = 1LL << 40;
  if (elements <= limit)
    return success();
  return op.emitOpError() << "needs a padded input of at most 2^40 elements, "
                             "but ["
                          << counts << "] windows of [" << size
                          << "] elements of " << input
                          << " lie in a larger one";
}

LogicalResult ConvolutionOp::verify() {
  if (failed(verifyWindowAttrs(*this)))
    return failure();
  auto input = getInput().getType(), weight = getWeight().getType();
  size_t n = getStride().size(), groups = hasGroups() ? 1 : 0;
  size_t rank = n + 2 + groups;
  auto sizeOf = [](RankedTensorType type, size_t dim) {
    return type.getShape()[dim];
  };
  if (input.getShape().size() != rank || weight.getShape().size() != rank ||
      getType().getShape().size() != rank ||
      sizeOf(getType(), 0) != sizeOf(input, 0) ||
      sizeOf(getType(), 1 + groups) != sizeOf(weight, groups) ||
      sizeOf(input, 1 + groups) != sizeOf(weight, 1 + groups) ||
      (groups && (sizeOf(weight, 0) != sizeOf(input, 1) ||
                  sizeOf(getType(), 1) != sizeOf(input, 1))))
    return emitOpError() << "needs input (b, c, s…), weight (m, c, k…) and "
                            "result (b, m, p…), or all with g before their "
                            "channels, with "
                         << n << " spatial dimensions, found " << input << ", "
                         << weight << " and " << getType();
  return verifyPadded(*this, input, weight.getShape().take_back(n),
                      getType().getShape().take_back(n));
}

/// `windows` are those of `input`.
template <typename OpT>
static LogicalResult verifyWindows(OpT op, RankedTensorType input,
                                   RankedTensorType windows, StringRef order) {
  if (failed(verifyWindowAttrs(op)))
    return failure();
  size_t n = op.getStride().size(), rank = input.getShape().size();
  if (rank < n || windows.getShape().size() != rank + n ||
      windows.getShape().take_front(rank - n) !=
          input.getShape().take_front(rank - n))
    return op.emitOpError()
           << "needs " << order << " with " << n
           << " spatial dimensions, found " << op.getInput().getType()
           << " and " << op.getType();
  return verifyPadded(op, input, windows.getShape().slice(rank - n, n),
                      windows.getShape().take_back(n));
}

LogicalResult WindowsOp::verify() {
  return verifyWindows(*this, getInput().getType(), getType(),
                       "(l…, s…) and (l…, k…, p…)");
}

LogicalResult FoldOp::verify() {
  return verifyWindows(*this, getType(), getInput().getType(),
                       "(l…, k…, p…) and (l…, s…)");
}

LogicalResult PoolOp::verify() {
  auto input = getInput().getType();
  size_t n = getStride().size();
  if (failed(verifyWindowAttrs(*this)) ||
      failed(verifyEntries(*this, "size", getSize(), n, 1)))
    return failure();
  if (getKind() != ReduceKind::Max && getKind() != ReduceKind::Sum)
    return emitOpError() << "needs the kind 'max' or 'sum', found '"
                         << stringifyReduceKind(getKind()) << "'";
  if (input.getShape().size() < n ||
      getType().getShape().size() != input.getShape().size() ||
      getType().getShape().drop_back(n) != input.getShape().drop_back(n))
    return emitOpError() << "needs (l…, s…) and (l…, p…) with " << n
                         << " spatial dimensions, found " << input << " and "
                         << getType();
  return verifyPadded(*this, input, getSize(),
                      getType().getShape().take_back(n));
}
