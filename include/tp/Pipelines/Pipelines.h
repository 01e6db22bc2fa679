//===- Pipelines.h - Named pipelines and registration -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface for tools and embedders: registers the project's dialects,
// passes and pipelines, and builds the pipeline from a model to its per-rank
// program.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PIPELINES_PIPELINES_H
#define TP_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "tp/Sharding/Propagation/Propagation.h"

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace mlir::tp {

// ParallelizeOptions: Pipelines.td defines the options, their defaults and texts.
#include "tp/Pipelines/Pipelines.h.inc"

/// Lowers Model IR to per-rank IR. docs/Passes.md lists the passes.
void buildParallelizePipeline(OpPassManager &pm,
                              const ParallelizeOptions &options);

/// The project's dialects and the upstream ones that its passes produce, and
/// the sharding rules of upstream ops (tp/Extensions/Extensions.h).
void registerDialects(DialectRegistry &registry);

/// All passes and pipelines of the project, for textual pipelines.
void registerPassesAndPipelines();

/// The names of the options of the registered pass or pipeline `name`; empty if
/// none of that name is registered.
SmallVector<std::string> getPassOptionNames(StringRef name,
                                            MLIRContext *context);

} // namespace mlir::tp

#endif // TP_PIPELINES_PIPELINES_H
