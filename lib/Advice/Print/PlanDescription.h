//===- PlanDescription.h - The data to print of a plan ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_PRINT_PLANDESCRIPTION_H
#define TP_LIB_ADVICE_PRINT_PLANDESCRIPTION_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// A tensor at the boundary of a module.
struct TensorDescription {
  /// The name of an input; empty for an output.
  StringRef name;
  RankedTensorType type;
  /// One per mesh dimension: the declared placement, and the one that the
  /// tensor is brought to; nullopt if the plan leaves it alone.
  SmallVector<Layout> declared, placements;
};

struct StyleDescription {
  const PlanEntry *entry;
  unsigned group;
};

struct ParameterDescription {
  StringRef fqn;
  RankedTensorType type;
  /// One per mesh dimension.
  SmallVector<Placement> placements;
  int64_t bytes;
  /// The bytes on the rank that holds most.
  int64_t bytesPerRank;
  /// Null if no entry places it.
  const PlanEntry *entry;
};

struct ModuleDescription {
  StringRef fqn, className;
  SmallVector<StyleDescription> styles;
  std::vector<TensorDescription> inputs, outputs;
  /// Its own parameters; a tied one is listed at the first module that uses it.
  std::vector<ParameterDescription> parameters;
};

/// All modules of the model, in the order in which it calls them first.
std::vector<ModuleDescription> describe(const CheckedPlan &plan,
                                        ModuleOp model);

/// "(Shard(0), Replicate)", with a dash for nullopt.
std::string printList(ArrayRef<Layout> placements);
std::string printList(ArrayRef<Placement> placements);

} // namespace mlir::tp::plan

#endif // TP_LIB_ADVICE_PRINT_PLANDESCRIPTION_H
