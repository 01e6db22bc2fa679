//===- AxisParts.cpp - Parts of mesh dimensions ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TP/AxisParts.h"

using namespace mlir;
using namespace mlir::tp;

bool PartBounds::add(int64_t bound) {
  auto *it = llvm::lower_bound(bounds, bound);
  if (it != bounds.end() && *it == bound)
    return true;
  if (it == bounds.begin() || it == bounds.end() || *it % bound ||
      bound % *(it - 1))
    return false;
  bounds.insert(it, bound);
  return true;
}

ArrayRef<int64_t> PartBounds::getBetween(int64_t begin, int64_t end) const {
  return get()
      .drop_while([=](int64_t b) { return b < begin; })
      .take_while([=](int64_t b) { return b <= end; });
}

int64_t tp::getPartBegin(AxisRefAttr axis) {
  return axis.isWhole() ? 1 : axis.getPreSize();
}

int64_t tp::getPartEnd(MeshOp mesh, AxisRefAttr axis) {
  return getPartBegin(axis) * mesh.getAxisSize(axis);
}

AxisRefAttr tp::getPart(MeshOp mesh, StringRef name, int64_t begin,
                        int64_t end) {
  MLIRContext *context = mesh.getContext();
  auto whole = AxisRefAttr::get(context, name);
  if (begin == 1 && end == mesh.getAxisSize(whole))
    return whole;
  return AxisRefAttr::get(context, name, begin, end / begin);
}

SmallVector<AxisRefAttr> tp::cutParts(MeshOp mesh, ArrayRef<AxisRefAttr> axes,
                                      ArrayRef<AxisRefAttr> cuts) {
  SmallVector<AxisRefAttr> parts;
  for (AxisRefAttr axis : axes) {
    PartBounds bounds(getPartBegin(axis), getPartEnd(mesh, axis));
    for (AxisRefAttr cut : cuts)
      if (cut.getName() == axis.getName()) {
        bounds.add(getPartBegin(cut));
        bounds.add(getPartEnd(mesh, cut));
      }
    if (bounds.get().size() <= 2) {
      parts.push_back(axis);
      continue;
    }
    for (auto [begin, end] : llvm::zip(bounds.get(), bounds.get().drop_front()))
      parts.push_back(getPart(mesh, axis.getName(), begin, end));
  }
  return parts;
}

SmallVector<AxisRefAttr> tp::mergeParts(MeshOp mesh,
                                        ArrayRef<AxisRefAttr> axes) {
  SmallVector<AxisRefAttr> merged;
  for (AxisRefAttr axis : axes) {
    if (!merged.empty() && merged.back().getName() == axis.getName() &&
        getPartEnd(mesh, merged.back()) == getPartBegin(axis))
      merged.back() = getPart(mesh, axis.getName(), getPartBegin(merged.back()),
                              getPartEnd(mesh, axis));
    else
      merged.push_back(axis);
  }
  return merged;
}
