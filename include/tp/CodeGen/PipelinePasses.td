//===- PipelinePasses.td - Predictions by pipelines --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_PIPELINEPASSES_TD
#define TP_CODEGEN_PIPELINEPASSES_TD

include "mlir/Pass/PassBase.td"

def PredictMemory : Pass<"tp-predict-memory", "::mlir::ModuleOp"> {
  let summary = "Record the size of the arena that a per-rank program will have";
  let description = [{
    Runs the steps of `tp-lower-to-llvm` up to `tp-plan-arena` on a copy of the module, and leaves
    the arena's size on the module as `tp.arena_bytes`, for `tp-report`. This is exactly the size
    that `tp-compile` writes into the artifact and that each rank allocates, because the same passes
    compute it. The program isn't changed.

    ```mlir
    module attributes {tp.arena_bytes = 4096 : i64} { … }
    ```

    Fails if the program can't be lowered.
  }];
  let options = [
    Option<"onDevice", "on-device", "bool", "false", "The program is for CUDA devices">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
        "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

#endif // TP_CODEGEN_PIPELINEPASSES_TD
