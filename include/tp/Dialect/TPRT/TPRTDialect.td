//===- TPRTDialect.td - The tprt dialect -------------------*- tablegen -*-===//
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

    Discardable attributes annotate programs while they are lowered:

    | attribute | on | meaning | set by | read by |
    |---|---|---|---|---|
    | `tprt.manifest` | a module | a dictionary, the content of the artifact's manifest so far (docs/Artifact.md) | `tp-create-entry-point`, and later passes that add entries | `tp-compile` |
    | `tprt.repeated` | a function | the function holds ops that a program repeats; `tprt.call` calls it | `tp-outline-repeats` | the passes after it; `convert-program-to-llvm` removes it |
    | `tprt.role` | arguments of a program, or of a function with `tprt.repeated` | what the argument is: context, rank, input, parameter, output, arena or numbers | `tp-create-entry-point`, `tp-outline-repeats`, `tp-plan-arena`, `convert-tprt-to-calls` | the passes after these; `convert-program-to-llvm` removes it |
    | `tprt.sites` | a module | the messages of index checks that run on a device, by number | `convert-tprt-to-calls` | `tp-compile` |
    | `tprt.range_of` | a declared function | the kernel that the function calls for a range, with arguments that it reads from a table | `convert-tprt-to-calls` | `convert-program-to-llvm`, which removes it |
  }];
}

#endif // TP_DIALECT_TPRT_TPRTDIALECT_TD
