//===- Pipeline.h - Pipelines and their transfers ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stages of a pipeline work on different microbatches at the same time.
// Forward and backward pass of microbatch k have the numbers 2k and 2k + 1
// (`tp.pass`).
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_PIPELINE_H
#define TP_DIALECT_TP_PIPELINE_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/TP.h"

#include "tp/Dialect/TP/PipelineEnums.h.inc"

#define GET_OP_CLASSES
#include "tp/Dialect/TP/PipelineOps.h.inc"

namespace mlir::tp {

/// On an op, an i64: the stage that it belongs to. On a function: the first
/// stage of the ranks whose program it is, their index along the pipeline's mesh
/// dimension.
constexpr StringLiteral kStageAttr = "tp.stage";

/// On an argument or result of a stage's program: the stage doesn't have it,
/// and its type is empty.
constexpr StringLiteral kAbsentAttr = "tp.absent";

/// The pipeline of `module`; null if it has none.
PipelineOp getPipeline(ModuleOp module);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_PIPELINE_H
