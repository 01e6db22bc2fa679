//===- Strategies.h - Strategies of ops -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Over each mesh dimension, an op is split along a factor, passes a Partial
// through, or runs replicated. A mesh dimension that doesn't divide the major
// factor of a product (for example, the heads of grouped-query attention) may
// be cut into parts that split different factors. A strategy is one such choice
// for every mesh dimension, with the placements that it needs and gives.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_STRATEGIES_H
#define TP_SHARDING_STRATEGIES_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Sharding/CommunicationCost.h"

namespace mlir::tp {

/// What one mesh dimension, or a part of one, splits in an op.
struct SplitChoice {
  AxisRefAttr axis;
  /// Index into the rule's linear sets, else into its factors.
  bool isLinear = false;
  unsigned index = 0;
  /// The segments of the factor; empty if it is split as a whole.
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
  /// The op's own cost: the elements that a rank computes, and the collectives
  /// of its partition hook.
  CommunicationCost cost;

  /// Whether this strategy splits everything that `other` splits, in the same
  /// way.
  bool extends(const Strategy &other) const;
};

/// All combinations of `choices`, at most one for each mesh dimension or part
/// of one, that give valid placements. The replicated strategy is among them.
/// Returns nothing if there are more than `limit`. `width` is the size of an
/// element in bytes; it counts what partition hooks move. Several mesh
/// dimensions that split one factor nest in the mesh's order. With `anyOrder`,
/// they nest in other orders too; those strategies come last.
std::vector<Strategy> enumerateStrategies(const ShardingRule &rule, MeshOp mesh,
                                          ArrayRef<SplitChoice> choices,
                                          int64_t width, bool anyOrder,
                                          size_t limit);

/// Cuts `axis` where a factor of the product `dim` ends, so that each part
/// splits one factor. The axes that are major to `axis` on that dimension split
/// it into `before` blocks. Adds nothing to `parts` if `axis` needn't be cut,
/// or if the sizes have no common divisor.
void collectParts(const ShardingRule &rule, ArrayRef<unsigned> dim, MeshOp mesh,
                  AxisRefAttr axis, int64_t before,
                  SmallVectorImpl<AxisRefAttr> &parts);

} // namespace mlir::tp

#endif // TP_SHARDING_STRATEGIES_H
