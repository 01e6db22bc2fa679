//===- Edit.h - a change of a parallelize plan ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single entries that could be written otherwise, for whoever wants to know
// what that would do. Whether an edit makes a plan that a model can be
// parallelized by, checkPlan says.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_EDIT_H
#define TP_PLAN_EDIT_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

struct PlanEdit {
  enum class Action { Replace, Add, Remove };
  Action action;
  /// Index into PlanFile::groups, and of an entry there; an addition is at its
  /// end.
  unsigned group, entry;
  /// What stands there then, unless it is removed.
  PlanEntry changed;
};

/// `file` with `edit`.
PlanFile applyEdit(PlanFile file, const PlanEdit &edit);

/// An entry as a plan has it: "net1: {style: ColwiseParallel, output_layouts:
/// Shard(1)}".
std::string printEntry(const PlanEntry &entry);

/// Edits of what `plan` says about the modules with the FQNs `modules`: each
/// layout otherwise, another style, a pattern for one of the kinds of modules
/// that an entry is about, no entry, an entry where there is none. Smaller
/// changes come first.
std::vector<PlanEdit> proposeEdits(const CheckedPlan &plan,
                                   ArrayRef<StringRef> modules);

} // namespace mlir::tp::plan

#endif // TP_PLAN_EDIT_H
