//===- PipelineSchedule.cpp - The order of a pipeline's passes ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TP/PipelineSchedule.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace mlir::tp;

SmallVector<StringRef> tp::getPipelineScheduleNames() {
  SmallVector<StringRef> names;
  for (uint32_t value = 0;; ++value) {
    std::optional<PipelineSchedule> schedule = symbolizePipelineSchedule(value);
    if (!schedule)
      return names;
    names.push_back(stringifyPipelineSchedule(*schedule));
  }
}

bool tp::allowsSeveralStages(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::Interleaved1F1B ||
         schedule == PipelineSchedule::InterleavedZeroBubble;
}

bool tp::requiresSeveralStages(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::Interleaved1F1B;
}

std::optional<int64_t> tp::getRoundSize(int64_t numMicrobatches,
                                        int64_t numRanks) {
  int64_t numRounds = std::max<int64_t>(1, numMicrobatches / numRanks);
  if (numMicrobatches % numRounds != 0)
    return std::nullopt;
  return numMicrobatches / numRounds;
}

/// The number of forward passes before the first backward pass, but for one.
static int64_t getWarmup(const PipelineShape &shape, int64_t rank) {
  int64_t hops = shape.numRanks - 1 - rank;
  int64_t rounds = (shape.stagesPerRank - 1) * shape.roundSize;
  switch (shape.schedule) {
  case PipelineSchedule::GPipe:
    return shape.numMicrobatches;
  case PipelineSchedule::OneFOneB:
    return hops;
  case PipelineSchedule::Interleaved1F1B:
    return rounds + 2 * hops;
  case PipelineSchedule::InterleavedZeroBubble:
    return rounds + hops;
  }
  llvm_unreachable("all schedules are handled");
}

/// The passes of one kind that `rank` runs: round by round, and in a round
/// stage by stage, those of backward passes last first.
static SmallVector<StagePass> getPasses(const PipelineShape &shape,
                                        int64_t rank, PassKind kind) {
  SmallVector<StagePass> passes;
  for (int64_t begin = 0; begin < shape.numMicrobatches;
       begin += shape.roundSize)
    for (int64_t i = 0; i < shape.stagesPerRank; ++i) {
      int64_t local =
          kind == PassKind::Forward ? i : shape.stagesPerRank - 1 - i;
      for (int64_t batch = begin;
           batch < std::min(begin + shape.roundSize, shape.numMicrobatches);
           ++batch)
        passes.push_back({local * shape.numRanks + rank, batch, kind});
    }
  return passes;
}

SmallVector<StagePass> tp::getPassOrder(const PipelineShape &shape,
                                        int64_t rank) {
  SmallVector<StagePass> order = getPasses(shape, rank, PassKind::Forward);
  if (!shape.hasBackward)
    return order;
  SmallVector<StagePass> forward = std::move(order), weights;
  order = {};
  if (shape.schedule == PipelineSchedule::InterleavedZeroBubble)
    weights = getPasses(shape, rank, PassKind::WeightGradients);
  ArrayRef<StagePass> forwardLeft = forward, weightsLeft = weights;
  auto take = [&](ArrayRef<StagePass> &left, size_t count) {
    count = std::min(count, left.size());
    llvm::append_range(order, left.take_front(count));
    left = left.drop_front(count);
  };
  take(forwardLeft, getWarmup(shape, rank));
  int64_t numBackward = 0;
  for (StagePass pass : getPasses(shape, rank, PassKind::Backward)) {
    take(forwardLeft, 1);
    order.push_back(pass);
    if (++numBackward > rank)
      take(weightsLeft, 1);
  }
  take(weightsLeft, weightsLeft.size());
  return order;
}

std::optional<SmallVector<SmallVector<int64_t>>>
tp::getPassSteps(const PipelineShape &shape,
                 ArrayRef<SmallVector<StagePass>> orders) {
  int64_t numStages = shape.numRanks * shape.stagesPerRank;
  // By stage, microbatch and kind: the step after the pass; -1: not run yet.
  SmallVector<int64_t> ends(numStages * shape.numMicrobatches * kNumPassKinds,
                            -1);
  auto endOf = [&](int64_t stage, int64_t batch, PassKind kind) -> int64_t & {
    return ends[(stage * shape.numMicrobatches + batch) * kNumPassKinds +
                static_cast<int64_t>(kind)];
  };
  /// The step at which what `pass` depends on is over; -1: it isn't run yet.
  auto getReady = [&](const StagePass &pass) -> int64_t {
    auto [stage, batch, kind] = pass;
    switch (kind) {
    case PassKind::Forward:
      return stage == 0 ? 0 : endOf(stage - 1, batch, kind);
    case PassKind::Backward:
      return stage + 1 == numStages ? endOf(stage, batch, PassKind::Forward)
                                    : endOf(stage + 1, batch, kind);
    case PassKind::WeightGradients:
      return endOf(stage, batch, PassKind::Backward);
    }
    llvm_unreachable("all kinds are handled");
  };
  SmallVector<SmallVector<int64_t>> steps(orders.size());
  for (bool progress = true; progress;) {
    progress = false;
    for (auto [order, own] : llvm::zip_equal(orders, steps))
      while (own.size() < order.size()) {
        const StagePass &pass = order[own.size()];
        int64_t ready = getReady(pass);
        if (ready < 0)
          break;
        int64_t step =
            std::max(ready, own.empty() ? int64_t(0) : own.back() + 1);
        own.push_back(step);
        endOf(pass.stage, pass.microbatch, pass.kind) = step + 1;
        progress = true;
      }
  }
  for (auto [order, own] : llvm::zip_equal(orders, steps))
    if (own.size() < order.size())
      return std::nullopt;
  return steps;
}
