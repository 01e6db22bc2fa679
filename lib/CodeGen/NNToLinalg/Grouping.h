//===- Grouping.h - Heads of grouped-query attention ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_NNTOLINALG_GROUPING_H
#define TP_LIB_CODEGEN_NNTOLINALG_GROUPING_H

#include "LinalgBuilders.h"
#include "tp/Dialect/NN/NN.h"

namespace mlir::tp::nnlinalg {

/// Grouped-query attention splits the head dimension of query, mask and result
/// into (key heads, group); key and value are shared by the group.
struct Grouping {
  Grouping(Value queries, Value keys) {
    ArrayRef<int64_t> query = getTensorType(queries).getShape();
    ArrayRef<int64_t> key = getTensorType(keys).getShape();
    if (query.size() < 3)
      return;
    keyHeads = key[key.size() - 3];
    int64_t heads = query[query.size() - 3];
    if (keyHeads != 0 && heads != keyHeads)
      group = heads / keyHeads;
  }

  bool isGrouped() const { return group != 1; }

  /// `shape`, whose third dimension from the end is the heads, with the heads
  /// split.
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

  Value split(ImplicitLocOpBuilder &b, Value value) const {
    return buildReshape(b, value, split(getTensorType(value).getShape()));
  }

  /// The map of an operand over `numLead` leading and `numInner` inner loops.
  /// It has the leading loops, except the group's if the group shares the
  /// operand, and the inner loops `first` and `second`.
  AffineMap getMap(MLIRContext *context, unsigned numLead, unsigned numInner,
                   unsigned first, unsigned second, bool isShared) const {
    SmallVector<unsigned> loops;
    for (unsigned i = 0; i < numLead; ++i)
      if (!isShared || !isGrouped() || i + 1 != numLead)
        loops.push_back(i);
    loops.append({numLead + first, numLead + second});
    return AffineMap::getMultiDimMapWithTargets(numLead + numInner, loops,
                                                context);
  }

  int64_t keyHeads = 1;
  int64_t group = 1;
};

} // namespace mlir::tp::nnlinalg

#endif // TP_LIB_CODEGEN_NNTOLINALG_GROUPING_H
