//===- PairwiseParallel.h - PyTorch 2.0's pairs of nn.Linear ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_STYLES_PAIRWISEPARALLEL_H
#define TP_LIB_PLAN_STYLES_PAIRWISEPARALLEL_H

#include "WeightedModule.h"

namespace mlir::tp::plan {

/// Whether `module`, or a module inside it, calls two nn.Linear modules such
/// that one depends on the other.
bool hasLinearPairInside(ModuleOpInterface module);

/// Splits the nn.Linear modules that `requests.getModule()` calls in pairs, by
/// columns and by rows. If it calls none, does the same in each of its
/// children. `input` is the layout that the first ones' input has, `output` the
/// layout that the last ones' output gets.
void splitPairs(const NamedLayout &input, const NamedLayout &output,
                FileLineColLoc loc, ModuleRequests &requests);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STYLES_PAIRWISEPARALLEL_H
