//===- CodeGenPipeline.h - The named pipeline to LLVM -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_PIPELINE_CODEGENPIPELINE_H
#define TP_CODEGEN_PIPELINE_CODEGENPIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace mlir {
class DialectRegistry;
}

namespace mlir::tp {

/// Adds the passes that lower a per-rank program of nn and tp ops to GEMM calls
/// and kernels on one arena, whose size is then known. Kernels are formed for
/// the loops of a CPU or, if `isForDevice`, for a device's blocks of threads. If
/// `describeArena`, the module says what lives in the arena (`tp.arena_use`).
void buildLowerToArenaPipeline(OpPassManager &pm, bool isForDevice = false,
                               bool describeArena = false);

/// Adds the passes that lower a per-rank program of nn and tp ops to the LLVM
/// dialect; docs/CodeGeneration.md lists them in order.
void buildLowerToLLVMPipeline(OpPassManager &pm);

/// Adds the passes that lower a per-rank program to one that launches the
/// gpu.funcs of the module `@kernels`.
void buildLowerToKernelsPipeline(OpPassManager &pm);

/// Adds the passes that lower a per-rank program to the LLVM dialect for the
/// host, and to the module `@kernels` of gpu.funcs that it launches.
void buildLowerToCUDAPipeline(OpPassManager &pm);

/// Adds the passes that lower the GPU modules of buildLowerToCUDAPipeline to
/// the NVVM dialect.
void buildLowerKernelsToNVVMPipeline(OpPassManager &pm);

/// Adds the passes that lower a module with nothing but a GPU module to host
/// functions in the LLVM dialect, each of which emulates one thread.
void buildEmulateKernelsPipeline(OpPassManager &pm);

/// Makes the pipelines available as `tp-lower-to-llvm`, `tp-lower-to-kernels`
/// and `tp-lower-to-cuda`.
void registerLoweringPipelines();

/// Registers the dialects, bufferization models and translations that the
/// pipeline and the artifact's writer need.
void registerCodeGeneration(DialectRegistry &registry);

} // namespace mlir::tp

#endif // TP_CODEGEN_PIPELINE_CODEGENPIPELINE_H
