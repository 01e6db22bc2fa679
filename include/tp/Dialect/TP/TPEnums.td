//===- TPEnums.td - tp enumerations ------------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPENUMS_TD
#define TP_DIALECT_TP_TPENUMS_TD

include "mlir/IR/EnumAttr.td"

def TP_ReductionKind : I32EnumAttr<"ReductionKind",
    "how the per-rank parts of a Partial value combine", [
      I32EnumAttrCase<"Sum", 0, "sum">,
      I32EnumAttrCase<"Avg", 1, "avg">,
      I32EnumAttrCase<"Max", 2, "max">,
      I32EnumAttrCase<"Min", 3, "min">,
      I32EnumAttrCase<"Product", 4, "product">,
    ]> {
  let cppNamespace = "::mlir::tp";
  let genSpecializedAttr = 0;
}

def TP_ContextMethod : I32EnumAttr<"ContextMethod",
    "how attention communicates when the sequence is split", [
      I32EnumAttrCase<"Cheapest", 0, "cheapest">,
      I32EnumAttrCase<"AllGather", 1, "all_gather">,
      I32EnumAttrCase<"AllToAll", 2, "all_to_all">,
      I32EnumAttrCase<"Ring", 3, "ring">,
    ]> {
  let cppNamespace = "::mlir::tp";
}

#endif // TP_DIALECT_TP_TPENUMS_TD
