//===- ArenaPasses.td - One arena for all buffers ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_ARENAPASSES_TD
#define TP_CODEGEN_ARENAPASSES_TD

include "mlir/Pass/PassBase.td"

def PlanArena : Pass<"tp-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Place all buffers in one arena";
  let description = [{
    Every `memref.alloc` of a program lives from its first to its last use. Buffers that are live at
    the same time get disjoint ranges of one arena, whose sizes are multiples of 64 bytes. The pass
    places them one by one, each into the tightest gap that fits it. It tries several orders
    (largest first, first used first, largest product of size and lifetime first) and keeps the one
    with the smallest arena. A program gets the arena as its last argument, and `tprt.manifest` gets
    the size of the largest arena as `arena_bytes`. A remark (`--remarks-filter=tp-plan-arena`)
    compares this size with the most bytes that are live at one time, which is a lower bound.

    ```mlir
    %0 = memref.alloc() : memref<8x16xf32>
    ```

    becomes

    ```mlir
    %0 = memref.view %arena[%c512][] : memref<4096xi8> to memref<8x16xf32>
    ```
  }];
  let options = [
    Option<"describe", "describe", "bool", "false",
           "Whether to leave on the module, as `tp.arena_use`, what lives over time in the program with "
           "the largest arena">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

#endif // TP_CODEGEN_ARENAPASSES_TD
