//===- AtenIndexing.h - x[index, …] by integer tensors ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_ATENINDEXING_H
#define TP_LIB_IMPORT_ATEN_ATENINDEXING_H

#include "AtenCall.h"

namespace mlir::tp {

/// x[i0, i1, …] with tensors at consecutive dimensions from `first` on.
struct TensorIndexing {
  /// x, its dimensions permuted if tensors weren't next to each other.
  Value source;
  /// That permutation; empty if there is none.
  llvm::SmallVector<int64_t> permutation;
  int64_t first = -1;
  llvm::SmallVector<Value> indices;
  llvm::SmallVector<std::optional<ConstantIndex>> constants;
  /// The indices' common shape, which replaces the indexed dimensions.
  llvm::SmallVector<int64_t> shape;

  /// The shape of x[i0, i1, …].
  llvm::SmallVector<int64_t> getResultShape() const;
  /// The shape of the source with the indexed dimensions merged into one.
  llvm::SmallVector<int64_t> getMergedShape() const;
};

/// Reads the arguments `self` and `indices`, with None before, between and after
/// the tensors. Records why if a form isn't supported. Without tensors among
/// the indices, there are none in the result either.
FailureOr<TensorIndexing> readIndexing(AtenCall &call, ImportBuilder &b);

/// The positions in the merged dimension that the index tuples name, as a
/// vector. Negative indices count from the end.
Value buildPositions(ImportBuilder &b, const TensorIndexing &indexing);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_ATENINDEXING_H
