//===- AxisParts.h - Parts of mesh dimensions -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A part `x:(p)s` of a mesh dimension of size n covers the sizes from p to p *
// s, as Shardy's sub-axes do. Parts form a grid only if their bounds nest: each
// bound is a multiple of the one before. For 6 ranks, the bounds 2 and 3 don't
// nest, so no list of parts has both.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_AXISPARTS_H
#define TP_DIALECT_TP_AXISPARTS_H

#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// Ascending bounds of parts, each a multiple of the one before.
class PartBounds {
public:
  /// The bounds of a part that begins at `begin` and ends at `end`, a multiple
  /// of `begin`.
  PartBounds(int64_t begin, int64_t end) : bounds{begin} {
    if (end > begin)
      bounds.push_back(end);
  }
  /// The bounds of a dimension of size `size`.
  explicit PartBounds(int64_t size) : PartBounds(1, size) {}

  /// Adds `bound`, unless it doesn't nest with the others or lies outside.
  /// Returns whether it is one of the bounds now.
  bool add(int64_t bound);
  ArrayRef<int64_t> get() const { return bounds; }
  ArrayRef<int64_t> getBetween(int64_t begin, int64_t end) const;

private:
  SmallVector<int64_t> bounds;
};

/// The size of the part that is major to `axis` in its mesh dimension.
int64_t getPartBegin(AxisRefAttr axis);
/// The same, with `axis` included.
int64_t getPartEnd(MeshOp mesh, AxisRefAttr axis);
/// The part between two bounds; the whole mesh dimension if the part covers it.
AxisRefAttr getPart(MeshOp mesh, StringRef name, int64_t begin, int64_t end);

/// Cuts `axes` into parts such that each of `cuts` consists of whole parts. If
/// the bounds of `cuts` don't nest, the bounds of the first ones are used. The
/// parts of an axis always cover it.
SmallVector<AxisRefAttr> cutParts(MeshOp mesh, ArrayRef<AxisRefAttr> axes,
                                  ArrayRef<AxisRefAttr> cuts);

/// The axes in their coarsest form: parts of a mesh dimension that follow each
/// other become one.
SmallVector<AxisRefAttr> mergeParts(MeshOp mesh, ArrayRef<AxisRefAttr> axes);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_AXISPARTS_H
