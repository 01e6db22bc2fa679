//===- PlanKeys.h - The keys of a plan --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables that the readers of a plan and its JSON schema share.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PLAN_PLANKEYS_H
#define TP_LIB_PLAN_PLANKEYS_H

#include "tp/Plan/PlanFile.h"
#include "tp/Support/Schema.h"
#include <limits>

namespace mlir::tp::plan {

/// MPI and NCCL use an int for ranks.
inline constexpr int64_t kMaxRanks = std::numeric_limits<int32_t>::max();

inline constexpr NamedValue<MatchMode> kMatchModes[] = {
    {"fnmatch", MatchMode::Fnmatch},
    {"hf", MatchMode::HuggingFace},
    {"regex", MatchMode::Regex},
};
/// Whether a pattern may match nothing.
inline constexpr NamedValue<bool> kUnmatchedModes[] = {
    {"error", false},
    {"warn", true},
};
inline constexpr NamedValue<DataAxis::Style> kDataStyles[] = {
    {"ddp", DataAxis::DDP},
    {"fsdp", DataAxis::FSDP},
};

inline constexpr NamedValue<PipelineSchedule> kPipelineSchedules[] = {
    {"GPipe", PipelineSchedule::GPipe},
    {"1F1B", PipelineSchedule::OneFOneB},
    {"Interleaved1F1B", PipelineSchedule::Interleaved1F1B},
    {"InterleavedZeroBubble", PipelineSchedule::InterleavedZeroBubble},
};

inline constexpr NamedValue<ContextMethod> kContextMethods[] = {
    {"ring", ContextMethod::Ring},
    {"all_gather", ContextMethod::AllGather},
    {"all_to_all", ContextMethod::AllToAll},
    {"cheapest", ContextMethod::Cheapest},
};

/// What the schema of plans defines under this name.
llvm::json::Object makeReference(StringRef name);

/// The keys of the file.
ArrayRef<KeySpec> getPlanKeys();
/// The keys of an item of `parallelize`.
ArrayRef<KeySpec> getGroupKeys();
/// The keys of a mesh that lists its devices.
ArrayRef<KeySpec> getMeshKeys();
/// The keys of a style of `data_parallel`.
ArrayRef<KeySpec> getDataKeys();
/// The keys of a mesh dimension of `context_parallel`.
ArrayRef<KeySpec> getContextKeys();
/// The keys of a mesh dimension of `pipeline`.
ArrayRef<KeySpec> getPipelineKeys();

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_PLANKEYS_H
