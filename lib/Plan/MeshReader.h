//===- MeshReader.h - the mesh of a plan ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_MESHREADER_H
#define TP_LIB_PLAN_MESHREADER_H

#include "tp/Plan/PlanFile.h"
#include "tp/Support/FieldReader.h"

namespace mlir::tp::plan {

/// Reads `mesh` and `world_size`: `{dp: 2, tp: 4}`, or
/// `{dims: {dp: 2, tp: 4}, devices: [[0, 2, 4, 6], [1, 3, 5, 7]]}`.
class MeshReader : public FieldReader {
public:
  explicit MeshReader(PlanFile &plan) : plan(plan) {}

  /// Either value is null where the plan doesn't have it; `rootLoc` is the
  /// plan's place.
  void read(const YamlValue *mesh, const YamlValue *worldSize,
            FileLineColLoc rootLoc);

private:
  void readAxes(const YamlValue &axes);
  void readDevices(const YamlValue &devices);
  /// Takes the ranks of `value`, a rank or nested lists of the mesh's shape
  /// from its dimension `depth` on.
  bool addDevices(const YamlValue &value, size_t depth);
  int64_t getNumRanks() const;

  PlanFile &plan;
};

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_MESHREADER_H
