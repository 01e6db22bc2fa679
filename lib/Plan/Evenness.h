//===- Evenness.h - Sizes that ranks don't divide ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_EVENNESS_H
#define TP_LIB_PLAN_EVENNESS_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// "uneven": a Shard whose dimension doesn't divide evenly. `tensor` is the
/// tensor's name in the message.
std::optional<Finding> checkEvenness(const Placement &placement,
                                     RankedTensorType type, const Twine &tensor,
                                     const MeshGroup &group,
                                     FileLineColLoc loc);

/// "16 and 24": the multiples of `ranks` next to `size`, below and above.
std::string listDividingSizes(int64_t size, int64_t ranks);
/// "2, 5, 10": the numbers of ranks, up to 1024, that divide `size`; "1" only
/// if there are no others.
std::string listDivisors(int64_t size);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_EVENNESS_H
