//===- AxisParts.h - Parts of mesh dimensions -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A part `x:(p)s` of a mesh dimension of size n covers the sizes from p to
// p * s, as Shardy's sub-axes do. Parts form a grid only where their bounds
// nest: each bound is a multiple of the one before. Of 6 ranks, the bounds 2
// and 3 don't, and no list of parts has both.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_AXISPARTS_H
#define TP_DIALECT_TP_AXISPARTS_H

#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// Ascending bounds of parts, each a multiple of the one before.
class PartBounds {
public:
  /// Of what begins at `begin` and ends at `end`, a multiple of it.
  PartBounds(int64_t begin, int64_t end) : bounds{begin} {
    if (end > begin)
      bounds.push_back(end);
  }
  /// Of a whole of this size.
  explicit PartBounds(int64_t size) : PartBounds(1, size) {}

  /// Whether `bound` is one of them now; not where it doesn't nest with the
  /// others, or lies outside.
  bool add(int64_t bound);
  ArrayRef<int64_t> get() const { return bounds; }
  ArrayRef<int64_t> getBetween(int64_t begin, int64_t end) const;

private:
  SmallVector<int64_t> bounds;
};

/// The size of what is major to `axis` in its mesh dimension.
int64_t getPartBegin(AxisRefAttr axis);
/// That with `axis`.
int64_t getPartEnd(MeshOp mesh, AxisRefAttr axis);
/// The part between two bounds; the whole mesh dimension where it is all.
AxisRefAttr getPart(MeshOp mesh, StringRef name, int64_t begin, int64_t end);

/// The axes in parts, such that each one of `cuts` is made of whole ones. Where
/// the bounds of `cuts` don't nest, those of the first ones are taken. The
/// parts of an axis always make up all of it.
SmallVector<AxisRefAttr> cutParts(MeshOp mesh, ArrayRef<AxisRefAttr> axes,
                                  ArrayRef<AxisRefAttr> cuts);

/// The axes in their coarsest form: parts of a mesh dimension that follow each
/// other become one.
SmallVector<AxisRefAttr> mergeParts(MeshOp mesh, ArrayRef<AxisRefAttr> axes);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_AXISPARTS_H
