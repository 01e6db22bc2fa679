//===- TPTypes.td - Values of started collectives ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPTYPES_TD
#define TP_DIALECT_TP_TPTYPES_TD

include "tp/Dialect/TP/TPDialect.td"
include "mlir/IR/AttrTypeBase.td"

def TP_PendingType : TypeDef<TP_Dialect, "Pending"> {
  let mnemonic = "pending";
  let summary = "the result of a started collective";
  let description = [{
    The tensor isn't available yet: `tp.start` returns a value of this type, and `tp.wait` waits for
    the collective and returns the tensor.

    ```mlir
    !tp.pending<tensor<16x4xf32>>
    ```
  }];
  let parameters = (ins TypeParameter<"::mlir::RankedTensorType", "the tensor">:$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

#endif // TP_DIALECT_TP_TPTYPES_TD
