//===- MeshUse.h - What each mesh dimension is used for ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLANNING_MESHUSE_H
#define TP_LIB_PLANNING_MESHUSE_H

#include "tp/Plan/PlanFile.h"

namespace mlir::tp::planning {

enum class AxisRole {
  Tensor, ///< splits parameters, and what is computed with them
  DDP,    ///< splits the batch; parameters are replicated
  FSDP,   ///< splits the batch; parameters are split and gathered for each use
};

/// "tensor", "ddp", "fsdp".
StringRef getName(AxisRole role);

struct MeshUse {
  std::vector<plan::MeshAxis> mesh;
  /// One per dimension of the mesh.
  std::vector<AxisRole> roles;

  /// The dimensions that split parameters.
  plan::AxisSet getTensorAxes() const;
  /// "dp=2 fsdp, tp=4 tensor"
  std::string describe() const;
};

/// All uses of `mesh`. At most one dimension is DDP, and at most one FSDP. FSDP
/// comes after DDP, as in HSDP: replicas of what the later dimension shards.
std::vector<MeshUse> getMeshUses(ArrayRef<plan::MeshAxis> mesh);

/// The text of the plan that uses the mesh so, and has `entries` over the
/// dimensions that split parameters.
std::string printPlan(const MeshUse &use, ArrayRef<plan::PlanEntry> entries);

} // namespace mlir::tp::planning

#endif // TP_LIB_PLANNING_MESHUSE_H
