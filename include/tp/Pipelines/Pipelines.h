//===- Pipelines.h - The named pipelines, registration ----------*- C++ -*-===//
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

struct ParallelizeOptions : public PassPipelineOptions<ParallelizeOptions> {
  PassOptions::Option<std::string> plan{
      *this, "plan",
      llvm::cl::desc("Path of the parallelize plan, YAML or JSON; without one, "
                     "the mesh and placements in the IR are used"),
      llvm::cl::init("")};
  PassOptions::Option<std::string> train{
      *this, "train",
      llvm::cl::desc("Path of the training file, YAML or JSON; with one, the "
                     "program is a training step of the model"),
      llvm::cl::init("")};
  PassOptions::Option<bool> strict{
      *this, "strict",
      llvm::cl::desc("Make errors of what lint finds; default false: warnings"),
      llvm::cl::init(false)};
  PassOptions::Option<PropagationStrategy> strategy{
      *this, "strategy",
      llvm::cl::desc("How placements are chosen: optimal (the default) or "
                     "greedy"),
      llvm::cl::init(PropagationStrategy::Optimal),
      llvm::cl::values(clEnumValN(PropagationStrategy::Greedy, "greedy",
                                  "op by op, then local improvement"),
                       clEnumValN(PropagationStrategy::Optimal, "optimal",
                                  "the least communication over the whole "
                                  "program"))};
  PassOptions::Option<bool> forbidImplicit{
      *this, "forbid-implicit",
      llvm::cl::desc("Refuse redistributions that nothing in the plan or the "
                     "IR asks for"),
      llvm::cl::init(false)};
  PassOptions::Option<unsigned> exhaustiveOps{
      *this, "exhaustive-ops",
      llvm::cl::desc("Programs of at most this many ops consider every split "
                     "of every op"),
      llvm::cl::init(256)};
  PassOptions::Option<uint64_t> searchBudget{
      *this, "search-budget",
      llvm::cl::desc("Limit of the work to bound the search where its tables "
                     "would be too large: costs of moves that are examined"),
      llvm::cl::init(500'000'000)};
  PassOptions::Option<int64_t> latencyBytes{
      *this, "latency-bytes",
      llvm::cl::desc("Cost of a collective besides the bytes that it moves, in "
                     "bytes that a rank could have received; -1 (the default): "
                     "65536, or 1024 in a training step, where many "
                     "collectives are joined"),
      llvm::cl::init(-1)};
  PassOptions::Option<std::string> report{
      *this, "report",
      llvm::cl::desc("Path of the JSON report of collectives and parameters "
                     "(docs/Report.md); none is written when empty"),
      llvm::cl::init("")};
  PassOptions::Option<std::string> machine{
      *this, "machine",
      llvm::cl::desc("Name or description of the machine to predict a run on "
                     "(docs/Prediction.md); nothing is predicted when empty"),
      llvm::cl::init("")};
  PassOptions::Option<bool> table{
      *this, "table",
      llvm::cl::desc("Print the prediction as a table to the standard output"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> oneShot{
      *this, "one-shot",
      llvm::cl::desc("Whether one exchange may replace several collectives "
                     "where that moves less"),
      llvm::cl::init(true)};
  PassOptions::Option<bool> memory{
      *this, "memory",
      llvm::cl::desc("Allow no block during a redistribution that is larger "
                     "than both its first and its last one"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> sequenceParallel{
      *this, "sequence-parallel",
      llvm::cl::desc(
          "Whether ops between an all_reduce and those that need its "
          "result whole run on blocks"),
      llvm::cl::init(false)};
  PassOptions::Option<int64_t> bucketBytes{
      *this, "bucket-bytes",
      llvm::cl::desc("Join independent collectives up to this many bytes; 0: "
                     "never, not even those of an FSDP group; -1 (the "
                     "default): FSDP's groups and, in a training step, "
                     "reductions up to 25 MiB, as DistributedDataParallel "
                     "does"),
      llvm::cl::init(-1)};
  PassOptions::Option<uint64_t> memoryLimit{
      *this, "memory-limit",
      llvm::cl::desc(
          "Repeat all_gathers instead of keeping their results where more "
          "than this many bytes are live; 0: never"),
      llvm::cl::init(0)};
  PassOptions::Option<bool> overlap{
      *this, "overlap",
      llvm::cl::desc(
          "Whether collectives are started early and waited for late"),
      llvm::cl::init(false)};
  PassOptions::Option<int64_t> chunks{
      *this, "chunks",
      llvm::cl::desc("With 'overlap', number of chunks into which collectives "
                     "next to contractions are cut; 1: none is cut"),
      llvm::cl::init(1)};
};

/// Lowers Model IR to per-rank IR. Adds tp-add-loss (with a plan and a training
/// file), tp-apply-plan (with a plan), tp-grad (with a training file),
/// tp-propagate, tp-partition, tp-optimize-collectives, tp-overlap-collectives
/// (with `overlap`; without it, tp-update-early in a training step),
/// tp-verify-collectives, tp-predict-memory (with a machine) and tp-report.
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
