//===- AtenBag.cpp - sums of embeddings, lookups in flat tensors ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ReduceKind;

/// Elements of the flattened tensor; negative indices count from its end.
static LogicalResult take(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self"), index = call.tensor("index");
  int64_t size = typeOf(self).getNumElements();
  index = b.wrapIndex(b.reshape(index, {typeOf(index).getNumElements()}), size);
  Value picked =
      nn::IndexSelectOp::create(b, b.reshape(self, {size}), index, 0);
  return call.result(b.reshape(picked, call.resultShape()));
}

namespace {
/// The numbers of PyTorch's `mode`.
enum BagMode { Sum = 0, Mean = 1, Max = 2 };
} // namespace

/// Where each bag begins, and at the end where the last one ends: numbers that
/// ascend from 0 to at most `count`. Records why if the offsets are others.
static FailureOr<llvm::SmallVector<int64_t>> bagBounds(AtenCall &call,
                                                       int64_t count) {
  std::optional<ConstantIndex> offsets = call.constantIndex("offsets");
  if (!offsets)
    return call.unsupported("with offsets that aren't constant");
  llvm::SmallVector<int64_t> bounds = offsets->values;
  if (!call.flag("include_last_offset"))
    bounds.push_back(count);
  if (bounds.empty())
    return call.unsupported("without offsets, expected at least one");
  if (bounds.front() != 0 || !llvm::is_sorted(bounds) || bounds.back() > count)
    return call.unsupported("with offsets that don't ascend from 0 to at most "
                            "the number of indices, " +
                            llvm::Twine(count));
  return bounds;
}

/// Sums the rows of each bag, or computes their mean, by a constant matrix that
/// says which row is in which bag.
static Value multiplyBags(ImportBuilder &b, BagMode mode, Value rows,
                          ArrayRef<int64_t> bounds) {
  int64_t numBags = bounds.size() - 1, count = shapeOf(rows)[0];
  llvm::SmallVector<float> isInBag(numBags * count, 0), sizes;
  for (int64_t bag = 0; bag < numBags; ++bag) {
    for (int64_t i = bounds[bag]; i < bounds[bag + 1]; ++i)
      isInBag[bag * count + i] = 1;
    sizes.push_back(std::max<int64_t>(bounds[bag + 1] - bounds[bag], 1));
  }
  auto constant = [&](ArrayRef<int64_t> shape, ArrayRef<float> values) {
    auto type = RankedTensorType::get(shape, b.getF32Type());
    return castTo(
        b, nn::ConstantOp::create(b, DenseElementsAttr::get(type, values)),
        elementOf(rows));
  };
  Value sums = matmul(b, constant({numBags, count}, isInBag), rows);
  return mode == Mean ? div(b, sums, constant({numBags, 1}, sizes)) : sums;
}

/// Reduces the rows of each bag. Bags of one size are a dimension.
static FailureOr<Value> reduceBags(AtenCall &call, ImportBuilder &b,
                                   BagMode mode, Value rows,
                                   ArrayRef<int64_t> bounds) {
  constexpr int64_t kMaxElements = int64_t(1) << 20;
  int64_t numBags = bounds.size() - 1, count = shapeOf(rows)[0],
          width = shapeOf(rows)[1];
  int64_t size = numBags == 0 ? 0 : count / numBags;
  bool isEven = size != 0 && count == size * numBags;
  for (int64_t i = 0; i <= numBags && isEven; ++i)
    isEven = bounds[i] == i * size;
  if (isEven) {
    ReduceKind kind = mode == Max    ? ReduceKind::Max
                      : mode == Mean ? ReduceKind::Mean
                                     : ReduceKind::Sum;
    return b.reduce(kind, b.reshape(rows, {numBags, size, width}), {1}, false);
  }
  if (mode == Max)
    return call.unsupported("of maxima of bags of different sizes");
  if (numBags > kMaxElements / std::max<int64_t>(count, 1))
    return call.unsupported("of more than 2^20 bags times indices");
  return multiplyBags(b, mode, rows, bounds);
}

/// nn.EmbeddingBag with constant offsets.
static LogicalResult embeddingBag(AtenCall &call, ImportBuilder &b) {
  Value indices = call.tensor("indices");
  auto mode = static_cast<BagMode>(call.integer("mode"));
  auto bounds = bagBounds(call, shapeOf(indices)[0]);
  if (failed(bounds))
    return failure();
  Value rows = b.widen(
      nn::EmbeddingOp::create(b, indices, call.tensor("weight"), IntegerAttr(),
                              call.flag("scale_grad_by_freq")));
  if (call.has("per_sample_weights"))
    rows = mul(
        b, rows,
        unsqueeze(b,
                  castTo(b, call.tensor("per_sample_weights"), elementOf(rows)),
                  1));
  auto result = reduceBags(call, b, mode, rows, *bounds);
  if (failed(result))
    return failure();
  return call.result(castTo(b, *result, call.resultElement()));
}

void mlir::tp::addBagOps(AtenTable &table) {
  table["take"] = {take, "self index"};
  for (StringRef name : {"_embedding_bag", "_embedding_bag_forward_only"})
    table[name] = {.run = embeddingBag,
                   .reads = "weight indices offsets scale_grad_by_freq mode "
                            "per_sample_weights include_last_offset",
                   .noEffect = "sparse",
                   .refuses = "padding_idx"};
}
