//===- PipelineSchedule.h - The order of a pipeline's passes ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedules of torch.distributed.pipelining. Rank r of n along the
// pipeline's mesh dimension runs the stages r, r + n, r + 2n, …. On each
// microbatch a stage runs a forward and a backward pass. With
// InterleavedZeroBubble the backward pass is in two parts: the gradients that
// other stages wait for, and later those of weights ("Zero Bubble Pipeline
// Parallelism", Qi et al., 2023; with one stage per rank this is its ZB-H1).
//
// Each rank first runs some forward passes (warmup), then a forward and a
// backward pass in turn, and then the rest of the backward passes:
//
//   schedule               warmup of rank r, with v stages per rank
//   GPipe                  all forward passes
//   1F1B                   n - 1 - r
//   Interleaved1F1B        (v - 1) * p + 2 * (n - 1 - r)
//   InterleavedZeroBubble  (v - 1) * p + (n - 1 - r)
//
// With several stages per rank, the microbatches run in rounds of p: a rank's
// first stage runs its passes of the round, then its second stage, and so on.
// The gradients of weights follow r backward passes later.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_PIPELINESCHEDULE_H
#define TP_DIALECT_TP_PIPELINESCHEDULE_H

#include "tp/Dialect/TP/Pipeline.h"
#include <optional>

namespace mlir::tp {

/// The model is copied for each microbatch.
inline constexpr int64_t kMaxMicrobatches = 1024;

/// The schedule lists every pass of every stage.
inline constexpr int64_t kMaxStagesPerRank = 1024;

enum class PassKind { Forward, Backward, WeightGradients };
inline constexpr int64_t kNumPassKinds = 3;

/// What a stage does for one microbatch.
struct StagePass {
  int64_t stage, microbatch;
  PassKind kind;

  bool operator==(const StagePass &) const = default;
};

/// The names of all schedules.
SmallVector<StringRef> getPipelineScheduleNames();

/// Whether a rank may have several stages, and whether it must.
bool allowsSeveralStages(PipelineSchedule schedule);
bool requiresSeveralStages(PipelineSchedule schedule);

/// The number of microbatches in a round of `numMicrobatches`, at least one, on
/// `numRanks` ranks; nullopt if rounds of equal size, each at least as large as
/// the number of ranks, can't be made as PyTorch makes them.
std::optional<int64_t> getRoundSize(int64_t numMicrobatches, int64_t numRanks);

struct PipelineShape {
  PipelineSchedule schedule;
  int64_t numRanks, stagesPerRank, numMicrobatches, roundSize;
  /// Without it, there are only forward passes.
  bool hasBackward;
};

/// The order in which `rank` runs its passes.
///
///   1F1B, 2 ranks, 3 microbatches (F: forward, B: backward pass):
///     rank 0: F0 F1 B0 F2 B1 B2
///     rank 1: F0 B0 F1 B1 F2 B2
///   Interleaved1F1B, 2 ranks, 4 stages, 2 microbatches (stage:pass):
///     rank 0: 0:F0 0:F1 2:F0 2:F1 2:B0 2:B1 0:B0 0:B1
///     rank 1: 1:F0 1:F1 3:F0 3:B0 3:F1 3:B1 1:B0 1:B1
SmallVector<StagePass> getPassOrder(const PipelineShape &shape, int64_t rank);

/// By rank, for each pass in its order, the step in which it runs if every pass
/// takes one step, and begins once the passes that it depends on are over.
/// Fails if the order of ranks makes them wait for each other forever.
std::optional<SmallVector<SmallVector<int64_t>>>
getPassSteps(const PipelineShape &shape,
             ArrayRef<SmallVector<StagePass>> orders);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_PIPELINESCHEDULE_H
