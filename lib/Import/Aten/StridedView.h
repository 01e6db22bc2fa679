//===- StridedView.h - a tensor as a part of another ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of PyTorch that share memory differ in sizes, strides and offset
// alone. So these say how to read a view from the tensor that has all of the
// memory, its base, and how to write it, whatever ops have made the view. A
// value of the IR has no memory: a write gives a new value of the base.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_ATEN_STRIDEDVIEW_H
#define TP_LIB_IMPORT_ATEN_STRIDEDVIEW_H

#include "Import/ImportBuilder.h"
#include <optional>
#include <string>

namespace mlir::tp {

/// Where the elements of a tensor lie in memory, counted in elements.
struct StridedLayout {
  llvm::SmallVector<int64_t> sizes, strides;
  int64_t offset = 0;

  /// In row-major order from 0 on.
  static StridedLayout contiguous(ArrayRef<int64_t> sizes);
  bool operator==(const StridedLayout &other) const = default;
};

/// The steps from a base to a view of it. For a 4×6 matrix y,
///
///     y[1:3, ::2].t()   slice dim 0, slice dim 1, transpose
///     y.view(-1)[3:]    reshape to 24, slice dim 0
///     y.diagonal()      reshape to 24, slice dim 0 by 7
class StridedView {
public:
  /// None, with the reason, if no such steps are known.
  static std::optional<StridedView>
  find(const StridedLayout &base, const StridedLayout &view, std::string &why);

  Value read(ImportBuilder &b, Value base) const;
  /// `base` with `part` as the view. The view must be writable.
  Value write(ImportBuilder &b, Value base, Value part) const;
  /// Whether no two elements of the view are one of the base.
  bool isWritable() const { return !repeats; }

private:
  struct Step {
    enum Kind { Reshape, Transpose, Pad, Slice, Broadcast } kind;
    /// A shape or a permutation.
    llvm::SmallVector<int64_t> dims;
    int64_t dim = 0, start = 0, size = 0, step = 1;
  };

  Value apply(ImportBuilder &b, const Step &step, Value before) const;

  llvm::SmallVector<Step> steps;
  llvm::SmallVector<int64_t> shape;
  bool repeats = false;
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_STRIDEDVIEW_H
