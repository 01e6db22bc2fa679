//===- PlanDescription.h - what there is to print of a plan -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_PRINT_PLANDESCRIPTION_H
#define TP_LIB_ADVICE_PRINT_PLANDESCRIPTION_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// A tensor at the boundary of a module.
struct TensorDescription {
  /// The name of an input; empty of an output.
  StringRef name;
  RankedTensorType type;
  /// One per mesh dimension: how it comes, and what it is brought to; nothing
  /// where the plan leaves it alone.
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
  /// Of the rank that holds most.
  int64_t bytesPerRank;
  /// Null where no entry is about it.
  const PlanEntry *entry;
};

struct ModuleDescription {
  StringRef fqn, className;
  SmallVector<StyleDescription> styles;
  std::vector<TensorDescription> inputs, outputs;
  /// Those that are its own; tied ones stand at the first module that uses
  /// them.
  std::vector<ParameterDescription> parameters;
};

/// All modules of the model, in the order in which it calls them first.
std::vector<ModuleDescription> describe(const CheckedPlan &plan,
                                        ModuleOp model);

/// "(Shard(0), Replicate)"; a dash where the plan says nothing.
std::string printList(ArrayRef<Layout> placements);
std::string printList(ArrayRef<Placement> placements);

} // namespace mlir::tp::plan

#endif // TP_LIB_ADVICE_PRINT_PLANDESCRIPTION_H
