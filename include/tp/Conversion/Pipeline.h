//===- Pipeline.h - the named pipeline to LLVM ------------------*- C++ -*-===//

#ifndef TP_CONVERSION_PIPELINE_H
#define TP_CONVERSION_PIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace mlir {
class DialectRegistry;
}

namespace mlir::tp {

/// Adds the passes that lead from a per-rank program of nn and tp ops to GEMM
/// calls and kernels on one arena, whose size is then known.
void buildLowerToArenaPipeline(OpPassManager &pm);

/// Adds the passes that lead from a per-rank program of nn and tp ops to the
/// LLVM dialect; docs/CodeGeneration.md lists them in order.
void buildLowerToLLVMPipeline(OpPassManager &pm);

/// Makes the pipeline available as `tp-lower-to-llvm`.
void registerLowerToLLVMPipeline();

/// Registers the dialects, bufferization models and translations that the
/// pipeline and the artifact's writer need.
void registerCodeGeneration(DialectRegistry &registry);

} // namespace mlir::tp

#endif // TP_CONVERSION_PIPELINE_H
