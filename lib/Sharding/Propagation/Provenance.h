//===- Provenance.h - The way from what is fixed to a value -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_PROVENANCE_H
#define TP_LIB_SHARDING_PROPAGATION_PROVENANCE_H

#include "PropagationGraph.h"
#include "tp/Sharding/Propagation/Explanation.h"

namespace mlir::tp::propagation {

/// Searches, for each mesh dimension, from all that is fixed at once along ops
/// and uses whose placements agree: the shortest way to each place. Places are
/// values and their uses.
class Provenance {
public:
  /// `getHave` is how a value is placed, `getNeed` how a use needs it.
  Provenance(
      MeshOp mesh, const Graph &graph,
      function_ref<ShardingAttr(const FlowValue &)> getHave,
      function_ref<ShardingAttr(const FlowValue &, const Use &)> getNeed);

  PlacementChain getChain(unsigned value, unsigned axis);
  /// Of the n-th use of `value`.
  PlacementChain getChain(unsigned value, unsigned use, unsigned axis);

  /// The placement over each mesh dimension.
  ArrayRef<std::string> print(ShardingAttr sharding);
  /// What `axis` splits in the op of `node`, as PlacementChain::Step has it.
  StringRef getSplit(unsigned node, unsigned axis);
  /// The same for an op that runs with these placements, for each mesh
  /// dimension.
  SmallVector<std::string> getSplits(Operation *op,
                                     ArrayRef<ShardingAttr> operands,
                                     ArrayRef<ShardingAttr> results);

private:
  static constexpr unsigned kNone = ~0u;
  struct Place {
    /// The node that gives or takes it.
    unsigned node;
    /// The value that it is, or is a use of.
    unsigned value;
    bool isUse;
    ShardingAttr sharding;
  };
  /// How the search got to a place, from itself where it began there; where it
  /// began, and how many ops lie between.
  struct Arrival {
    unsigned from = kNone;
    bool throughNode = false;
    unsigned source = kNone, numSteps = 0;
  };

  /// The op's placements as they are.
  SmallVector<ShardingAttr> getOperands(unsigned node) const;
  SmallVector<ShardingAttr> getResults(unsigned node) const;
  void search(unsigned axis);
  std::optional<PlacementSource> getSource(const Node &node,
                                           unsigned axis) const;
  enum class Reluctance { None, Some, Much };
  std::optional<Reluctance> getStep(const Node &node, const Place &from,
                                    const Place &to, unsigned axis,
                                    bool isSplit);
  PlacementChain trace(unsigned place, unsigned axis);

  MeshOp mesh;
  const Graph &graph;
  std::vector<Place> places;
  /// Where the uses of each value begin among the places, and those that each
  /// node takes; kNone for scalars.
  std::vector<unsigned> firstUse;
  std::vector<SmallVector<unsigned, 2>> taken;
  /// By mesh dimension, then place.
  std::vector<std::vector<Arrival>> arrivals;
  DenseMap<ShardingAttr, SmallVector<std::string>> printed;
  DenseMap<unsigned, SmallVector<std::string>> splits;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_PROVENANCE_H
