//===- TPRTInterfaces.td - Interfaces of runtime calls -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TPRT_TPRTINTERFACES_TD
#define TP_DIALECT_TPRT_TPRTINTERFACES_TD

include "mlir/IR/Interfaces.td"

def TPRT_LibraryCallInterface : OpInterface<"LibraryCallOpInterface"> {
  let cppNamespace = "::mlir::tprt";
  let description = [{
    A call that computes. Traces and profiles use the interface to tell how much. The op works on
    memrefs.
  }];
  let methods = [
    InterfaceMethod<"Floating-point operations; a fused multiply-add counts as two.",
                    "int64_t", "getFlops">,
    InterfaceMethod<"Bytes of operands that are read and written, each once.",
                    "int64_t", "getTouchedBytes">,
    InterfaceMethod<"The element type of the products, which tells how fast a machine can be.",
                    "::mlir::Type", "getComputedType", (ins), [{}], [{
                      return ::mlir::getElementTypeOrSelf($_op->getOperand(0));
                    }]>
  ];
}

#endif // TP_DIALECT_TPRT_TPRTINTERFACES_TD
