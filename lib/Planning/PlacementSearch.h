//===- PlacementSearch.h - Placements of parameters by cost -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLANNING_PLACEMENTSEARCH_H
#define TP_LIB_PLANNING_PLACEMENTSEARCH_H

#include "MeshUse.h"
#include "mlir/IR/BuiltinOps.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp::planning {

/// The placements of parameters, by FQN, over each dimension of the mesh that
/// splits parameters.
using ParameterPlacements =
    llvm::MapVector<StringAttr, SmallVector<plan::Placement, 1>>;

/// The placements with which the ranks of `machine` need the least time for
/// computing and communicating in the forward pass of `model`. Holding a byte
/// of a parameter costs as much as receiving `holding` bytes. Fails, with an
/// error, if the model can't be propagated.
FailureOr<ParameterPlacements>
searchPlacements(ModuleOp model, const MeshUse &use, const Machine &machine,
                 double holding, uint64_t searchBudget);

} // namespace mlir::tp::planning

#endif // TP_LIB_PLANNING_PLACEMENTSEARCH_H
