//===- RepeatedSearch.h - The search among equal layers ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model repeats its layers. If each layer takes only its own values and those
// of the previous layer, a smaller graph decides for all: it keeps the first
// two and the last two layers, and the last layer but one stands for all layers
// between them, too.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H
#define TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H

#include "MoveCosts.h"

namespace mlir::tp::propagation {

struct RepeatedDecision : Decision {
  /// The number of layers that the smaller graph hasn't.
  size_t numMerged = 0;
};

/// Decides for `graph` as a search in all of it would. Nullopt if the graph
/// doesn't repeat a part often enough, or if the cheapest choice isn't certain
/// to be found.
std::optional<RepeatedDecision>
searchRepeated(const Graph &graph, StrategySpace &space, MoveCosts &costs,
               MeshOp mesh, const PropagationOptions &options);

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H
