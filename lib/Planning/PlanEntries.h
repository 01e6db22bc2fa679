//===- PlanEntries.h - Placements of parameters as a plan -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLANNING_PLANENTRIES_H
#define TP_LIB_PLANNING_PLANENTRIES_H

#include "PlacementSearch.h"

namespace mlir::tp::planning {

/// Which modules get the style, if there is one, that places their weights as
/// they are to be placed. Styles also set the layouts at the module's boundary;
/// all other split weights get placements, which don't.
enum class StyledModules {
  All,
  Numbered, ///< those whose names have numbers, as layers have
  None,
};

/// The entries of a plan with `placements` over the dimensions of `use` that
/// split parameters: few patterns, each for modules whose names differ only in
/// numbers, or in one character.
std::vector<plan::PlanEntry> makeEntries(ModuleOp model, const MeshUse &use,
                                         const ParameterPlacements &placements,
                                         StyledModules styled);

/// `entries`, and entries that split norms along the sequence, as Megatron-LM's
/// sequence parallelism: SequenceParallel for modules that keep the shape of
/// their input (b, s, d) and have only parameters of the size d. Residuals
/// follow by propagation. If `declares`, styled modules in `entries` say that
/// their inputs or outputs between the norms are split so, as torchtitan's plans
/// do. Empty if there are no such norms.
std::vector<plan::PlanEntry> splitSequence(ModuleOp model, const MeshUse &use,
                                           std::vector<plan::PlanEntry> entries,
                                           bool declares);

} // namespace mlir::tp::planning

#endif // TP_LIB_PLANNING_PLANENTRIES_H
