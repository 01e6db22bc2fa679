//===- RankIndices.h - Indices of all ranks along axes ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a placement or a collective gives a rank depends only on the rank's
// index along some axes. It is computed once for each index, and looked up for
// the others of thousands of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_RANKINDICES_H
#define TP_DIALECT_TP_RANKINDICES_H

#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

class RankIndices {
public:
  explicit RankIndices(MeshOp mesh) : mesh(mesh) {}

  /// By rank: its index along `axes`, the first major.
  ArrayRef<int64_t> get(AxisListAttr axes) {
    SmallVector<int64_t> &list = indices[axes];
    if (list.empty())
      for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
        list.push_back(mesh.getIndexAlong(rank, axes.getAxes()));
    return list;
  }

  /// By rank: the value of a function that depends only on the index along
  /// `axes`.
  template <typename Function>
  auto map(AxisListAttr axes, Function function) {
    using Value = decltype(function(int64_t()));
    SmallVector<std::optional<Value>> known(mesh.getAxesSize(axes.getAxes()));
    return llvm::map_to_vector(
        llvm::enumerate(get(axes)), [&](auto entry) -> Value {
          auto &value = known[entry.value()];
          if (!value)
            value = function(static_cast<int64_t>(entry.index()));
          return *value;
        });
  }

private:
  MeshOp mesh;
  DenseMap<AxisListAttr, SmallVector<int64_t>> indices;
};

} // namespace mlir::tp

#endif // TP_DIALECT_TP_RANKINDICES_H
