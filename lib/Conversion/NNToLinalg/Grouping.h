//===- Grouping.h - heads of grouped-query attention -----------*- C++ -*-===//

#ifndef TP_LIB_CONVERSION_NNTOLINALG_GROUPING_H
#define TP_LIB_CONVERSION_NNTOLINALG_GROUPING_H

#include "Builders.h"
#include "tp/Dialect/NN/NN.h"

namespace mlir::tp::nnlinalg {

/// Grouped-query attention splits the head dimension of query, mask and result
/// into (key heads, group); key and value are shared by the group.
struct Grouping {
  explicit Grouping(nn::AttentionOp op) {
    ArrayRef<int64_t> query = getTensorType(op.getQuery()).getShape();
    ArrayRef<int64_t> key = getTensorType(op.getKey()).getShape();
    if (query.size() < 3)
      return;
    keyHeads = key[key.size() - 3];
    int64_t heads = query[query.size() - 3];
    if (keyHeads != 0 && heads != keyHeads)
      group = heads / keyHeads;
  }

  bool isGrouped() const { return group != 1; }

  /// `shape`, the heads of which are third from the end, with heads split.
  SmallVector<int64_t> split(ArrayRef<int64_t> shape) const {
    SmallVector<int64_t> result(shape);
    if (!isGrouped() || shape.size() < 3)
      return result;
    size_t headDim = shape.size() - 3;
    if (shape[headDim] == 1) {
      result.insert(result.begin() + headDim, 1);
      return result;
    }
    result[headDim] = group;
    result.insert(result.begin() + headDim, keyHeads);
    return result;
  }

  int64_t keyHeads = 1;
  int64_t group = 1;
};

} // namespace mlir::tp::nnlinalg

#endif // TP_LIB_CONVERSION_NNTOLINALG_GROUPING_H
