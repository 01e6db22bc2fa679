//===- TPRTEnums.td - Enumerations of runtime calls --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TPRT_TPRTENUMS_TD
#define TP_DIALECT_TPRT_TPRTENUMS_TD

include "mlir/IR/EnumAttr.td"

def TPRT_Activation : I64EnumAttr<"Activation", "the activation in a GEMM epilogue", [
    I64EnumAttrCase<"Relu", 1, "relu">,
    I64EnumAttrCase<"Gelu", 2, "gelu">,
    I64EnumAttrCase<"GeluTanh", 3, "gelu_tanh">,
    I64EnumAttrCase<"Silu", 4, "silu">]> {
  let cppNamespace = "::mlir::tprt";
}

#endif // TP_DIALECT_TPRT_TPRTENUMS_TD
