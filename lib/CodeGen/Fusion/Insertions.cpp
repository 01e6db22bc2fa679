//===- Insertions.cpp - Insertions along one dimension --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Insertions.h"

using namespace mlir;
using namespace mlir::tp;

bool tp::isPlain(OffsetSizeAndStrideOpInterface op, RankedTensorType slice,
                 RankedTensorType whole) {
  return slice.getRank() == whole.getRank() &&
         !llvm::is_contained(op.getStaticOffsets(), ShapedType::kDynamic) &&
         !llvm::is_contained(op.getStaticSizes(), ShapedType::kDynamic) &&
         llvm::all_of(op.getStaticStrides(), [](int64_t s) { return s == 1; });
}

bool tp::isPlain(tensor::InsertSliceOp op) {
  return isPlain(op, op.getSourceType(), op.getDestType());
}

std::optional<int64_t> tp::getInsertedDim(tensor::InsertSliceOp op) {
  std::optional<int64_t> dim;
  for (auto [d, sizes] : llvm::enumerate(
           llvm::zip_equal(op.getStaticSizes(), op.getDestType().getShape()))) {
    auto [written, size] = sizes;
    if (written == size)
      continue;
    if (dim)
      return std::nullopt;
    dim = d;
  }
  return dim;
}

std::optional<Concatenation> tp::matchConcatenation(Value value,
                                                    size_t maxPieces) {
  auto last = value.getDefiningOp<tensor::InsertSliceOp>();
  std::optional<int64_t> dim =
      last && isPlain(last) ? getInsertedDim(last) : std::nullopt;
  if (!dim)
    return std::nullopt;
  Concatenation result{*dim, {}};
  while (auto op = value.getDefiningOp<tensor::InsertSliceOp>()) {
    if (!op->hasOneUse() || !isPlain(op) || getInsertedDim(op) != dim ||
        result.pieces.size() == maxPieces)
      return std::nullopt;
    result.pieces.push_back({op.getStaticOffsets()[*dim],
                             op.getStaticSizes()[*dim], op.getSource()});
    value = op.getDest();
  }
  llvm::sort(result.pieces,
             [](const auto &x, const auto &y) { return x.offset < y.offset; });
  int64_t end = 0;
  for (const Concatenation::Piece &piece : result.pieces) {
    if (piece.offset != end)
      return std::nullopt;
    end += piece.size;
  }
  if (end != last.getDestType().getDimSize(*dim))
    return std::nullopt;
  return result;
}
