//===- Alternatives.h - Other choices for one node --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_ALTERNATIVES_H
#define TP_LIB_SHARDING_PROPAGATION_ALTERNATIVES_H

#include "MoveCosts.h"

namespace mlir::tp::propagation {

/// The cheapest other candidates for `node`, best first, if all other nodes
/// have what was decided.
SmallVector<Propagation::Alternative>
getAlternatives(const Graph &graph, const Decision &decision, MoveCosts &costs,
                unsigned node, unsigned limit);

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_ALTERNATIVES_H
