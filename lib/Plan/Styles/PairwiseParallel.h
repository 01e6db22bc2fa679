//===- PairwiseParallel.h - PyTorch 2.0's pairs of nn.Linear ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_STYLES_PAIRWISEPARALLEL_H
#define TP_LIB_PLAN_STYLES_PAIRWISEPARALLEL_H

#include "WeightedModule.h"

namespace mlir::tp::plan {

/// Whether `module`, or a module inside of it, calls two nn.Linear modules of
/// which one depends on the other.
bool hasLinearPairInside(nn::ModuleOp module);

/// Splits the nn.Linear modules that `requests.getModule()` calls in pairs, by
/// columns and by rows; where it calls none, those of each of its children, and
/// so on. `input` is the layout in which the first ones' input comes, `output`
/// the layout of the last ones' output.
void splitPairs(const NamedLayout &input, const NamedLayout &output,
                FileLineColLoc loc, ModuleRequests &requests);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STYLES_PAIRWISEPARALLEL_H
