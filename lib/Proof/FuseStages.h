//===- FuseStages.h - One program of a pipeline's stages --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage's program computes with what other stages send to it. Together, the
// programs of a rank and of its partners in the other stages are one program,
// in which a transfer is the identity. Over the pipeline's mesh dimension this
// program is replicated, so it is proven like any other.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_FUSESTAGES_H
#define TP_LIB_PROOF_FUSESTAGES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/Pipeline.h"

namespace mlir::tp {

/// Appends to the module the fused programs of `programs`, those of all stages.
/// Transfers aren't started and waited for, but take place at once. What several
/// stages return or assign is taken from stage `preferred` if it has it. The
/// first fused program has the name of the first stage's function, which gets
/// another one. Emits an error if a stage waits for a value that is never sent,
/// or for one of another type, or if a value is never received.
FailureOr<SmallVector<func::FuncOp>> fuseStages(ArrayRef<func::FuncOp> programs,
                                                StringAttr name, MeshOp mesh,
                                                PipelineOp pipeline,
                                                int64_t preferred);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_FUSESTAGES_H
