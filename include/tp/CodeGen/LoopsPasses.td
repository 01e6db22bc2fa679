//===- LoopsPasses.td - Kernels ----------------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_LOOPSPASSES_TD
#define TP_CODEGEN_LOOPSPASSES_TD

include "mlir/Pass/PassBase.td"

def OutlineKernels : Pass<"tp-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Move loops into kernels, and share equal kernels";
  let description = [{
    Each linalg op, and each nest of loops over linalg ops, in a program becomes a call of a private
    function. A model repeats its layers, and ranks' programs are alike, so most calls share a
    kernel, which is compiled once. Kernels take whole buffers, which don't overlap, and take views
    of them inside. A buffer of at most 64 KiB that only the kernel uses is allocated on the
    kernel's stack.

    ```mlir
    linalg.generic … ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) {…}
    linalg.generic … ins(%c : memref<8xf32>) outs(%d : memref<8xf32>) {…}   // the same
    ```

    becomes

    ```mlir
    func.call @kernel_0(%a, %b) : …
    func.call @kernel_0(%c, %d) : …
    ```
  }];
  let options = [
    Option<"wholeOnly", "whole-only", "bool", "false",
           "Put a buffer on a kernel's stack only if the kernel takes no views of it, as for a "
           "buffer of one row">];
  let statistics = [Statistic<"numKernels", "kernels", "Distinct kernels">,
                    Statistic<"numCalls", "calls", "Calls of kernels">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect"];
}

def InsertProfileMarks : Pass<"tp-insert-profile-marks", "::mlir::ModuleOp"> {
  let summary = "Record which of the model's ops each part of a program computes";
  let description = [{
    Puts a `tprt.mark` before each kernel and library call. The manifest's `ops` describe the calls:
    the module and the ops that they come from, their floating-point operations, and the bytes that
    they read and write. Equal entries are merged. Traces and profiles name their parts after these
    entries. The manifest's `right_operands` are the positions of the parameters that all programs
    read only as right operands of `tprt.gemm`; a runtime needs them only in the form that it
    multiplies by.

    ```mlir
    func.call @kernel_0(%a, %b) : (memref<8x4xf32>, memref<8x4xf32>) -> () loc(…)
    ```

    becomes

    ```mlir
    tprt.mark 0    // {fqn = "net.1", op = "relu", kind = "kernel", flops = 32, bytes = 256}
    func.call @kernel_0(%a, %b) : (memref<8x4xf32>, memref<8x4xf32>) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::tprt::TPRTDialect"];
}

#endif // TP_CODEGEN_LOOPSPASSES_TD
