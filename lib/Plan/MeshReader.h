//===- MeshReader.h - The mesh of a plan ------------------------*- C++ -*-===//
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

  /// Either value is null if the plan lacks it; `rootLoc` is the plan's
  /// location.
  void read(const YamlValue *mesh, const YamlValue *worldSize,
            FileLineColLoc rootLoc);

private:
  void readAxes(const YamlValue &axes);
  void readDevices(const YamlValue &devices);
  /// Adds the ranks in `value`: a rank, or nested lists whose shape is that of
  /// the mesh from dimension `depth` on.
  bool addDevices(const YamlValue &value, size_t depth);
  int64_t getNumRanks() const;

  PlanFile &plan;
};

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_MESHREADER_H
