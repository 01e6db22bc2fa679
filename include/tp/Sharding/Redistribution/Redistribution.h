//===- Redistribution.h - Plans of redistributions --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This planner alone decides which collectives take a tensor from one placement
// to another, and what that costs. It searches over placements from both ends
// (A*; the admissible estimate is the elements that ranks still miss). A plan
// carries a certificate: its bytes and its peak, with their lower bounds.
//
// Sources: Rink et al., "Memory-efficient array redistribution through portable
// collective communication" (arXiv 2112.01075) for the moves and the memory
// bound; Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations" (2009), for reductions.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_REDISTRIBUTION_REDISTRIBUTION_H
#define TP_SHARDING_REDISTRIBUTION_REDISTRIBUTION_H

#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/CommunicationCost.h"
#include "tp/Support/ListInterner.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::tp {

/// One step of a redistribution, over the groups that `axes` span.
struct RedistributionStep {
  enum Kind {
    LocalSlice,
    AllGather,
    AllReduce,
    ReduceScatter,
    AllToAll,
    Permute,
    Exchange
  };
  Kind kind;
  SmallVector<AxisRefAttr> axes;
  /// The dimension that is sliced, gathered or scattered. For an all-to-all,
  /// the dimension that is split.
  int64_t dim = 0;
  /// For an all-to-all, the dimension that is concatenated.
  int64_t concatDim = 0;
  /// For an all-to-all between several pairs of dimensions: the dimension that
  /// is split and the one that is concatenated, for each of `axes`. They
  /// replace `dim` and `concatDim`. No dimension is in two pairs.
  SmallVector<std::pair<int64_t, int64_t>> pairs = {};
  ReductionKind reduction = ReductionKind::Sum;
  /// For a slice, the segments of a rank's block; each is cut on its own. Empty
  /// if the block is cut as a whole.
  SmallVector<int64_t, 0> segments = {};
  /// For a permute, the position that each position of the group receives from.
  SmallVector<int64_t> source = {};
  /// The tensor's placements before and after this step, in the plan's view of
  /// the tensor.
  ShardingAttr operand = {}, result = {};
};

/// The name of a step's op in the tp dialect, without the prefix: "all_gather",
/// ….
StringRef stringifyStep(RedistributionStep::Kind kind);

struct RedistributionOptions {
  /// Whether a single exchange may replace several collectives.
  bool oneShot = true;
  /// Whether every intermediate block must be at most as large as the larger of
  /// the source's and the target's blocks.
  bool memory = false;
};

/// Steps and their certificate. All sizes are in bytes. Totals are sums over
/// ranks; the other sizes are the largest that any rank has.
struct RedistributionPlan {
  SmallVector<RedistributionStep> steps;
  /// The plan may view a dimension of the tensor as several dimensions, so that
  /// parts of it can move on their own. For each dimension of the tensor, the
  /// sizes of these, major to minor; their product is the dimension's size.
  /// Empty if the steps use the tensor's own shape.
  SmallVector<SmallVector<int64_t>> view;
  int64_t receivedTotal = 0, receivedMax = 0;
  /// No plan receives less. Without a reduction, this is what ranks need and
  /// don't have. If a Partial is reduced, each element takes n - 1 transfers to
  /// add its n parts and c - 1 transfers to reach the c ranks that want it.
  int64_t lowerBoundTotal = 0, lowerBoundMax = 0;
  /// The largest block of the plan, and the largest of the source's and the
  /// target's blocks.
  int64_t peak = 0, peakLowerBound = 0;

  bool isOptimal() const { return receivedTotal == lowerBoundTotal; }
  int64_t getNumCollectives() const;
  /// The type of a tensor of type `type` in the steps' view.
  RankedTensorType getViewed(RankedTensorType type) const;
};

/// Plans redistributions over one mesh and prices them; each distinct
/// redistribution once.
class RedistributionPlanner {
public:
  RedistributionPlanner(MeshOp mesh, RedistributionOptions options)
      : mesh(mesh), options(options) {}

  /// The plan with the fewest bytes, then the fewest collectives, that the
  /// search finds from `from` to `to` for a tensor of type `type`. If a Partial
  /// is reduced, the plan has at most one collective for each place in the
  /// target that a reduced axis goes to, and one for each axis that moves:
  /// all-reduces aren't taken apart to save bytes. Fails, with the reason given
  /// to `emitError`, if `to` is Partial over a mesh dimension that `from` isn't
  /// Partial over, or with another reduction.
  FailureOr<const RedistributionPlan *>
  plan(ShardingAttr from, ShardingAttr to, RankedTensorType type,
       function_ref<InFlightDiagnostic()> emitError);

  /// The cost of that plan: the bytes that all ranks receive and the number of
  /// collectives. Infinite if there is no plan.
  CommunicationCost getCost(ShardingAttr from, ShardingAttr to,
                            RankedTensorType type);

  /// The number of placements that the searches for plans have examined so far.
  /// It measures their work and is the same on every machine.
  uint64_t getNumStates() const { return numStates; }

  /// A lower bound on the cost of any plan, found without making one. Once the
  /// plan's cost is known, that cost. Infinite if there is no plan.
  CommunicationCost getBound(ShardingAttr from, ShardingAttr to,
                             RankedTensorType type);

private:
  using Key = std::tuple<ShardingAttr, ShardingAttr, Type>;
  /// The cost of a redistribution. Kept small because there are many.
  struct Price {
    int64_t bytes = 0;
    int32_t collectives = 0;
    bool isPossible = true;
    /// Whether a plan may cost more.
    bool isBound = false;

    CommunicationCost getCost() const;
  };

  const RedistributionPlan &getPlan(ShardingAttr from, ShardingAttr to,
                                    RankedTensorType type);
  Price &getPrice(ShardingAttr from, ShardingAttr to, RankedTensorType type);
  Price computePrice(ShardingAttr from, ShardingAttr to, RankedTensorType type);
  /// The number of elements that a rank's blocks by `a` and by `b` share,
  /// summed over the ranks.
  int64_t getTotalShared(ArrayRef<int64_t> shape, ArrayRef<AxisListAttr> a,
                         ArrayRef<AxisListAttr> b);
  /// The same for the dimensions `dims`, summed over the ranks that differ
  /// only along `axes`, the mesh dimensions that split them.
  int64_t sumShared(const llvm::SmallBitVector &axes, ArrayRef<unsigned> dims,
                    ArrayRef<int64_t> shape, ArrayRef<AxisListAttr> a,
                    ArrayRef<AxisListAttr> b);

  MeshOp mesh;
  RedistributionOptions options;
  uint64_t numStates = 0;
  DenseMap<Key, std::unique_ptr<RedistributionPlan>> plans;
  /// Indexed by source and type, then by target, because targets are looked up
  /// in rows.
  DenseMap<std::pair<ShardingAttr, Type>,
           std::unique_ptr<DenseMap<ShardingAttr, Price>>>
      prices;
  /// Sums of shared elements, by the numbers of what they are sums of.
  ListInterner summed;
  SmallVector<int64_t> sums;
};

/// Succeeds if a value placed as `from` can be redistributed to `to`; otherwise
/// the reason goes to `emitError`.
LogicalResult
verifyRedistribution(ShardingAttr from, ShardingAttr to, MeshOp mesh,
                     function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::tp

#endif // TP_SHARDING_REDISTRIBUTION_REDISTRIBUTION_H
