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
  Value isNegative = compare(b, nn::ComparePredicate::LT, index, 0.0);
  index = select(b, isNegative,
                 add(b, index, integer(b, elementOf(index), size)), index);
  index = b.reshape(index, {typeOf(index).getNumElements()});
  Value picked =
      nn::IndexSelectOp::create(b, b.reshape(self, {size}), index, 0);
  return call.result(b.reshape(picked, call.resultShape()));
}

namespace {
/// The numbers of PyTorch's `mode`.
enum BagMode { Sum = 0, Mean = 1, Max = 2 };
} // namespace

/// Where each bag begins, and at the end where the last one ends.
static std::optional<llvm::SmallVector<int64_t>> bagBounds(AtenCall &call,
                                                           int64_t count) {
  std::optional<ConstantIndex> offsets = call.constantIndex("offsets");
  if (!offsets)
    return std::nullopt;
  llvm::SmallVector<int64_t> bounds = offsets->values;
  if (!call.flag("include_last_offset"))
    bounds.push_back(count);
  return bounds;
}

/// Reduces the rows of each bag. Bags of one size are a dimension; others are
/// the rows of a constant matrix that says which embedding is in which bag.
static Value reduceBags(ImportBuilder &b, BagMode mode, Value rows,
                        ArrayRef<int64_t> bounds) {
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
    return Value();
  llvm::SmallVector<float> shares(numBags * count, 0);
  for (int64_t bag = 0; bag < numBags; ++bag)
    for (int64_t i = bounds[bag]; i < bounds[bag + 1]; ++i)
      shares[bag * count + i] =
          mode == Mean ? 1.0f / float(bounds[bag + 1] - bounds[bag]) : 1.0f;
  auto type = RankedTensorType::get({numBags, count}, b.getF32Type());
  Value matrix = nn::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef<float>(shares)));
  return matmul(b, castTo(b, matrix, elementOf(rows)), rows);
}

/// nn.EmbeddingBag with constant offsets.
static LogicalResult embeddingBag(AtenCall &call, ImportBuilder &b) {
  constexpr int64_t kMaxElements = int64_t(1) << 20;
  Value indices = call.tensor("indices");
  auto mode = static_cast<BagMode>(call.integer("mode"));
  int64_t count = shapeOf(indices)[0];
  auto bounds = bagBounds(call, count);
  if (!bounds)
    return call.unsupported("with offsets that aren't constant");
  if (bounds->back() * int64_t(bounds->size()) > kMaxElements)
    return call.unsupported("of more than 2^20 bags times indices");
  Value rows = b.widen(
      nn::EmbeddingOp::create(b, indices, call.tensor("weight"), IntegerAttr(),
                              call.flag("scale_grad_by_freq")));
  if (call.has("per_sample_weights"))
    rows = mul(
        b, rows,
        unsqueeze(b,
                  castTo(b, call.tensor("per_sample_weights"), elementOf(rows)),
                  1));
  Value result = reduceBags(b, mode, rows, *bounds);
  if (!result)
    return call.unsupported("of maxima of bags of different sizes");
  return call.result(castTo(b, result, call.resultElement()));
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
