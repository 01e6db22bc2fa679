//===- PipelineEnums.td - Enumerations of pipelines --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_PIPELINEENUMS_TD
#define TP_DIALECT_TP_PIPELINEENUMS_TD

include "mlir/IR/EnumAttr.td"

def TP_PipelineSchedule : I32EnumAttr<"PipelineSchedule",
    "the order in which a stage runs the passes of the microbatches", [
      I32EnumAttrCase<"GPipe", 0, "GPipe">,
      I32EnumAttrCase<"OneFOneB", 1, "1F1B">,
      I32EnumAttrCase<"Interleaved1F1B", 2, "Interleaved1F1B">,
      I32EnumAttrCase<"InterleavedZeroBubble", 3, "InterleavedZeroBubble">,
    ]> {
  let cppNamespace = "::mlir::tp";
  let genSpecializedAttr = 0;
}

#endif // TP_DIALECT_TP_PIPELINEENUMS_TD
