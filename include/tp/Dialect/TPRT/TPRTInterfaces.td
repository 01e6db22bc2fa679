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

def TPRT_CollectiveCallInterface : OpInterface<"CollectiveCallOpInterface"> {
  let cppNamespace = "::mlir::tprt";
  let description = [{
    A call that runs a collective of the manifest, or a part of it. The calls of one collective,
    such as its start and its wait, have one number.
  }];
  let methods = [
    InterfaceMethod<"The collective's number in the manifest; in a function that `tprt.call` calls, "
                    "its place in the list of the call.",
                    "int64_t", "getId">,
    InterfaceMethod<"Sets the number.", "void", "setId", (ins "int64_t":$id)>
  ];
}

#endif // TP_DIALECT_TPRT_TPRTINTERFACES_TD
