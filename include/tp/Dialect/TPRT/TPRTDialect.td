//===- TPRTDialect.td - the tprt dialect -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TPRT_TPRTDIALECT_TD
#define TP_DIALECT_TPRT_TPRTDIALECT_TD

include "mlir/IR/DialectBase.td"

def TPRT_Dialect : Dialect {
  let name = "tprt";
  let cppNamespace = "::mlir::tprt";
  let summary = "What a per-rank program asks of the runtime";
  let description = [{
    Its ops become calls of the runtime's C ABI (docs/Artifact.md). They work on tensors before
    bufferization and on memrefs after it.
  }];
}

#endif // TP_DIALECT_TPRT_TPRTDIALECT_TD
