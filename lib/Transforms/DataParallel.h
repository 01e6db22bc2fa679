//===- DataParallel.h - the batch over mesh dimensions ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_DATAPARALLEL_H
#define TP_LIB_TRANSFORMS_DATAPARALLEL_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Plan/Plan.h"

namespace mlir::tp {

/// Writes what the plan's `data_parallel` says to the IR, after its other
/// entries: the batch of the inputs is split over all of these mesh dimensions
/// (`tp.batch`); over those of ddp parameters are replicated, over those of
/// fsdp they are split along dimension 0 and gathered before their uses.
void applyDataParallel(const plan::CheckedPlan &plan, ModuleOp model,
                       MeshOp mesh);

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_DATAPARALLEL_H
