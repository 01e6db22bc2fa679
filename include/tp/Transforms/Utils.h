//===- Utils.h - Helpers of transform passes --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRANSFORMS_UTILS_H
#define TP_TRANSFORMS_UTILS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {

/// Moves the bodies of `module` and of all modules in it to where `module` is,
/// and erases them. Each op that moves keeps its module's FQN as `tp.fqn`.
void inlineModule(ModuleOpInterface module);

/// Does so for all modules under `root`, which isn't one, and merges what the
/// functions under `root` read of parameters that FSDP splits
/// (shareParameters).
void inlineModules(Operation *root);

/// Replaces ops under `root` that only differ from simpler ones in their
/// gradients (GradientOpInterface::buildUndifferentiated). Call it when nothing
/// under `root` is differentiated any more.
void dropGradientForms(Operation *root);

/// Gives cross entropies, and sums or means of them, the batch and the sequence
/// of tokens as separate dimensions, where the model flattens them: logits
/// (b * s, c) become (b, c, s).
void keepTokenDims(ModuleOp model);

/// Merges the ops of `block` that read the same parameter into the first one,
/// and the gathers that FSDP needs of it into one for each placement.
/// `onlyFsdp`: only for parameters that FSDP splits (`tp.fsdp_group`).
void shareParameters(Block &block, bool onlyFsdp);

/// Fails with an error if a tensor of `module` has more than
/// kMaxTensorElements elements, because sizes and their products are computed
/// with 64 bits.
LogicalResult checkSizes(ModuleOp module);

/// The mesh of `module`, or null if there is none; fails with an error if there
/// are several.
FailureOr<MeshOp> getMesh(ModuleOp module);
/// The same, but fails with the error "no tp.mesh", continued by `message`, if
/// there is none.
FailureOr<MeshOp> getMesh(ModuleOp module, StringRef message);

/// The functions with a body that nothing in `module` calls. Fails with an
/// error if there are functions, but each is called.
FailureOr<SmallVector<func::FuncOp>> getRoots(ModuleOp module);

/// The function among `programs`, one or more programs of one function, that
/// each of the mesh's ranks runs. Fails with an error unless each runs exactly
/// one.
FailureOr<SmallVector<func::FuncOp>>
getProgramsByRank(ArrayRef<func::FuncOp> programs, int64_t numRanks);

/// The ranks that run `program`: those in its `tp.ranks`, or all.
SmallVector<int64_t> getRanksOf(func::FuncOp program, int64_t numRanks);

/// The programs of each function with a body (Programs.h): the function, then
/// its copies by their first rank. Each stage of a pipeline counts as a
/// function. Fails with an error if a copy has no body, if `tp.copy_of` names a
/// copy or no function with a body, or if not every rank runs exactly one of
/// the programs of a function or of a pipeline.
FailureOr<SmallVector<SmallVector<func::FuncOp>>> getPrograms(ModuleOp module);

/// Those of the pipeline's stages together, by the symbol of the function, or
/// of the first stage's.
llvm::MapVector<StringAttr, SmallVector<func::FuncOp>>
joinStages(ArrayRef<SmallVector<func::FuncOp>> programs);

} // namespace mlir::tp

#endif // TP_TRANSFORMS_UTILS_H
