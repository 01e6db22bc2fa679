//===- DataParallel.h - Data parallelism of a plan --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_DATAPARALLEL_H
#define TP_LIB_TRANSFORMS_DATAPARALLEL_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Plan/Plan.h"

namespace mlir::tp {

/// Writes the plan's `data_parallel` and `context_parallel` to the IR, after its
/// other entries. The batch of the inputs is split over all mesh dimensions of
/// `data_parallel` (`tp.batch`), and the sequence over that of
/// `context_parallel` (`tp.sequence`).
/// The experts are split over the mesh dimension of `expert_parallel`; other
/// parameters are replicated over the ddp ones; over the fsdp ones they are
/// split along dimension 0 and gathered before their uses.
void applyDataParallel(const plan::CheckedPlan &plan, ModuleOp model,
                       MeshOp mesh);

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_DATAPARALLEL_H
