//===- Provenance.h - Chains from fixed placements to values ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_PROVENANCE_H
#define TP_LIB_SHARDING_PROPAGATION_PROVENANCE_H

#include "PropagationGraph.h"
#include "tp/Sharding/Propagation/Explanation.h"

namespace mlir::tp::propagation {

/// For each mesh dimension, searches from all fixed placements at once, along
/// ops and uses whose placements agree, for the shortest way to each site. A
/// site is a value or a use of a value.
class Provenance {
public:
  /// The functions return the sharding that a value has, and the one that a use
  /// requires.
  Provenance(MeshOp mesh, const Graph &graph,
             function_ref<ShardingAttr(const FlowValue &)> getCurrentSharding,
             function_ref<ShardingAttr(const FlowValue &, const Use &)>
                 getRequiredSharding);

  PlacementChain getChain(unsigned value, unsigned axis);
  /// The chain of use number `use` of `value`.
  PlacementChain getChain(unsigned value, unsigned use, unsigned axis);

  /// The placement over each mesh dimension, as text.
  ArrayRef<std::string> print(ShardingAttr sharding);
  /// What `axis` splits in the op of `node`, as in PlacementChain::Step.
  StringRef getSplit(unsigned node, unsigned axis);
  /// The same for an op that runs with these placements, for each mesh
  /// dimension.
  SmallVector<std::string> getSplits(Operation *op,
                                     ArrayRef<ShardingAttr> operands,
                                     ArrayRef<ShardingAttr> results);

private:
  static constexpr unsigned kNone = ~0u;
  struct Site {
    /// The node that gives or takes it.
    unsigned node;
    /// The value, or the value that it is a use of.
    unsigned value;
    bool isUse;
    ShardingAttr sharding;
  };
  /// How the search got to a site: the previous site (the site itself if the
  /// search began there), the site where it began, and the number of ops
  /// between.
  struct Arrival {
    unsigned from = kNone;
    bool throughNode = false;
    unsigned source = kNone, numSteps = 0;
  };

  /// The placements of the op's operands and results.
  SmallVector<ShardingAttr> getOperands(unsigned node) const;
  SmallVector<ShardingAttr> getResults(unsigned node) const;
  void search(unsigned axis);
  std::optional<PlacementSource> getSource(const Node &node,
                                           unsigned axis) const;
  enum class Reluctance { None, Some, Much };
  std::optional<Reluctance> getStep(const Node &node, const Site &from,
                                    const Site &to, unsigned axis,
                                    bool isSplit);
  PlacementChain trace(unsigned site, unsigned axis);

  MeshOp mesh;
  const Graph &graph;
  std::vector<Site> sites;
  /// For each value, the site of its first use; for each node, the sites that
  /// it takes, kNone for scalars.
  std::vector<unsigned> firstUse;
  std::vector<SmallVector<unsigned, 2>> taken;
  /// Indexed by mesh dimension, then site.
  std::vector<std::vector<Arrival>> arrivals;
  DenseMap<ShardingAttr, SmallVector<std::string>> printed;
  DenseMap<unsigned, SmallVector<std::string>> splits;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_PROVENANCE_H
