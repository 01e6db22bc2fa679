//===- Strategies.h - The ways in which an op may run -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Over each mesh dimension an op is split along a factor, passes a Partial
// through, or runs replicated; a mesh dimension that doesn't divide the major
// factor of a product, as the heads of grouped-query attention, may be cut into
// parts that split different factors. A strategy is one such choice for every
// mesh dimension, with the placements that it needs and gives.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_STRATEGIES_H
#define TP_SHARDING_STRATEGIES_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Sharding/CommunicationCost.h"

namespace mlir::tp {

/// What one mesh dimension, or a part of one, does in an op.
struct SplitChoice {
  AxisRefAttr axis;
  /// Index into the rule's linear sets, else into its factors.
  bool isLinear = false;
  unsigned index = 0;
  /// The segments of the factor; empty: it is split as one.
  SmallVector<int64_t, 0> segments;

  friend bool operator==(const SplitChoice &a, const SplitChoice &b) {
    return a.axis == b.axis && a.isLinear == b.isLinear && a.index == b.index &&
           a.segments == b.segments;
  }
};

struct Strategy {
  OpSplit split;
  SmallVector<ShardingAttr, 3> operands;
  SmallVector<ShardingAttr, 1> results;
  /// What the op costs itself: the elements that a rank computes, and the
  /// collectives of its partition hook.
  CommunicationCost cost;

  /// Whether this splits all that `other` splits in the same way.
  bool extends(const Strategy &other) const;
};

/// All strategies made of `choices`, at most one for each mesh dimension or
/// part of one, that give valid placements; the replicated one is among them.
/// None at all where there are more than `limit`.
/// `width` is the bytes of an element, for what partition hooks move.
/// `anyOrder`: where several mesh dimensions split one factor, they nest in any
/// order, else in the mesh's; strategies that nest otherwise come last.
std::vector<Strategy> enumerateStrategies(const ShardingRule &rule, MeshOp mesh,
                                          ArrayRef<SplitChoice> choices,
                                          int64_t width, bool anyOrder,
                                          size_t limit);

/// The parts of `axis` that split the factors of the product `dim` each on its
/// own, where what is major to it on that dimension splits it in `before`
/// blocks: `axis` is cut where a factor ends. None where it needn't be cut, or
/// where the sizes have nothing in common.
void collectParts(const ShardingRule &rule, ArrayRef<unsigned> dim, MeshOp mesh,
                  AxisRefAttr axis, int64_t before,
                  SmallVectorImpl<AxisRefAttr> &parts);

} // namespace mlir::tp

#endif // TP_SHARDING_STRATEGIES_H
