//===- TPTypes.td - values under way -----------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPTYPES_TD
#define TP_DIALECT_TP_TPTYPES_TD

include "tp/Dialect/TP/TPDialect.td"
include "mlir/IR/AttrTypeBase.td"

def TP_PendingType : TypeDef<TP_Dialect, "Pending"> {
  let mnemonic = "pending";
  let summary = "a tensor that a collective will have given when it is waited for";
  let parameters = (ins TypeParameter<"::mlir::RankedTensorType", "the tensor">:$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

#endif // TP_DIALECT_TP_TPTYPES_TD
