//===- Insertions.h - Insertions along one dimension ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_FUSION_INSERTIONS_H
#define TP_LIB_CODEGEN_FUSION_INSERTIONS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::tp {

/// Whether the offsets, sizes and strides are known, without gaps, and the
/// slice has the whole tensor's rank.
bool isPlain(OffsetSizeAndStrideOpInterface op, RankedTensorType slice,
             RankedTensorType whole);
bool isPlain(tensor::InsertSliceOp op);

/// The one dimension of which `op` writes a part, if it writes all of the
/// others.
std::optional<int64_t> getInsertedDim(tensor::InsertSliceOp op);

/// What a tensor consists of along a dimension.
struct Concatenation {
  struct Piece {
    int64_t offset, size;
    Value value;
  };
  int64_t dim;
  SmallVector<Piece> pieces; ///< by offset
};

/// `value` as the concatenation that a chain of insertions writes, if it has at
/// most `maxPieces` and nothing else reads the chain.
std::optional<Concatenation> matchConcatenation(Value value, size_t maxPieces);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_FUSION_INSERTIONS_H
