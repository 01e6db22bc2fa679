//===- Edit.h - Changes of a parallelize plan -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proposes changes of single plan entries, so that callers can try what each
// change does. An edited plan need not be valid for the model: checkPlan
// decides that.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_EDIT_H
#define TP_PLAN_EDIT_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

struct PlanEdit {
  enum class Action { Replace, Add, Remove };
  Action action;
  /// Index into PlanFile::groups, and of an entry in that group. An addition
  /// goes to the group's end.
  unsigned group, entry;
  /// The new entry; Remove ignores it.
  PlanEntry changed;
};

/// `file` with `edit`.
PlanFile applyEdit(PlanFile file, const PlanEdit &edit);

/// The entry as a plan spells it: "net1: {style: ColwiseParallel,
/// output_layouts: Shard(1)}".
std::string printEntry(const PlanEntry &entry);

/// Proposes edits of the entries of `plan` for the modules with the FQNs
/// `modules`: another layout, another style, a pattern that matches only one of
/// the kinds of modules that the entry matches, no entry, or a new entry for a
/// module that has none. Smaller changes come first.
std::vector<PlanEdit> proposeEdits(const CheckedPlan &plan,
                                   ArrayRef<StringRef> modules);

} // namespace mlir::tp::plan

#endif // TP_PLAN_EDIT_H
