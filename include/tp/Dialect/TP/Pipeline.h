//===- Pipeline.h - Pipelines and their schedules ---------------*- C++ -*-===//
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

/// On an op, an i64: the stage that it belongs to. On a function: the stage
/// whose program it is.
constexpr StringLiteral kStageAttr = "tp.stage";

/// On an argument or result of a stage's program: the stage doesn't have it,
/// and its type is empty.
constexpr StringLiteral kAbsentAttr = "tp.absent";

/// The pipeline of `module`; null if it has none.
PipelineOp getPipeline(ModuleOp module);

/// The order in which `stage` of `numStages` runs the passes of
/// `numMicrobatches` microbatches; without a backward pass if not
/// `hasBackward`. As torch.distributed.pipelining's ScheduleGPipe and
/// Schedule1F1B: with 1F1B, stage s first runs numStages - s forward passes,
/// and then a backward and a forward pass in turn.
///
///   1F1B, 2 stages, 3 microbatches:  0 2 1 4 3 5  and  0 1 2 3 4 5
SmallVector<int64_t> getPassOrder(PipelineSchedule schedule, int64_t stage,
                                  int64_t numStages, int64_t numMicrobatches,
                                  bool hasBackward);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_PIPELINE_H
