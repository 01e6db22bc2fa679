//===- Reductions.h - Properties of reductions ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_REDUCTIONS_H
#define TP_DIALECT_TP_REDUCTIONS_H

#include "tp/Dialect/TP/TPEnums.h"

namespace mlir::tp {

/// Whether a reduction by `a` over one mesh dimension and a reduction by `b`
/// over another give the same result in both orders.
inline bool commute(ReductionKind a, ReductionKind b) {
  auto isLinear = [](ReductionKind kind) {
    return kind == ReductionKind::Sum || kind == ReductionKind::Avg;
  };
  return a == b || (isLinear(a) && isLinear(b));
}

} // namespace mlir::tp

#endif // TP_DIALECT_TP_REDUCTIONS_H
