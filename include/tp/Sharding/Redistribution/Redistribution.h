//===- Redistribution.h - From one placement to another ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one place that decides which collectives lead from one placement of a
// tensor to another, and what that costs. A plan is found by a search over
// placements from both ends (A*, admissible by what is missing) and carries a
// certificate: its bytes and its peak beside their lower bounds.
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
#include "llvm/ADT/DenseMap.h"

namespace mlir::tp {

/// One step of a redistribution, over a group that `axes` span.
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
  /// The dimension that is sliced, gathered or scattered; of an all-to-all, the
  /// one that is split.
  int64_t dim = 0;
  /// Of an all-to-all, the dimension that is put together.
  int64_t concatDim = 0;
  /// Of an all-to-all between several pairs of dimensions: for each of `axes`,
  /// the dimension that is split and the one that is put together, instead of
  /// `dim` and `concatDim`. No dimension is in two pairs.
  SmallVector<std::pair<int64_t, int64_t>> pairs = {};
  ReductionKind reduction = ReductionKind::Sum;
  /// Of a slice, the segments of a rank's block that are cut each on its own;
  /// empty where it is one.
  SmallVector<int64_t, 0> segments = {};
  /// Of a permute, where each position of the group receives from.
  SmallVector<int64_t> source = {};
  /// The placements before and after this step, of the tensor as the plan views
  /// it.
  ShardingAttr operand = {}, result = {};
};

/// The name of a step as the tp dialect's op has it: "all_gather", ….
StringRef stringifyStep(RedistributionStep::Kind kind);

struct RedistributionOptions {
  /// Whether a single exchange may stand for several collectives.
  bool oneShot = true;
  /// Whether no block on the way may be larger than the source's or the
  /// target's.
  bool memory = false;
};

/// Steps and their certificate. All sizes are in bytes; the totals are sums
/// over ranks, the others those of the rank that has most.
struct RedistributionPlan {
  SmallVector<RedistributionStep> steps;
  /// Dimensions as the steps see them, each the product of several, major to
  /// minor, so that parts of a dimension can move on their own: per dimension
  /// of the tensor the sizes of these. Empty where steps see the tensor as it
  /// is.
  SmallVector<SmallVector<int64_t>> view;
  int64_t receivedTotal = 0, receivedMax = 0;
  /// No plan receives less: what a rank needs and doesn't have; where a Partial
  /// is reduced, n - 1 parts that meet and c - 1 copies that are spread of each
  /// element.
  int64_t lowerBoundTotal = 0, lowerBoundMax = 0;
  /// The largest block on the way, and the larger of source and target.
  int64_t peak = 0, peakLowerBound = 0;

  bool isOptimal() const { return receivedTotal == lowerBoundTotal; }
  int64_t getNumCollectives() const;
  /// The shape that the steps see of a tensor of type `type`.
  RankedTensorType getViewed(RankedTensorType type) const;
};

/// Plans redistributions over one mesh, and prices them, each distinct one
/// once.
class RedistributionPlanner {
public:
  RedistributionPlanner(MeshOp mesh, RedistributionOptions options)
      : mesh(mesh), options(options) {}

  /// The plan of fewest bytes, then fewest collectives, from `from` to `to` for
  /// a tensor of type `type`. Where a Partial is reduced, it has at most one
  /// collective for each place that one goes to and for each axis that moves:
  /// all-reduces aren't taken apart to save bytes. Fails, with the reason given
  /// to `emitError`, where `to` is Partial over a mesh dimension that `from`
  /// isn't, or with another reduction.
  FailureOr<const RedistributionPlan *>
  plan(ShardingAttr from, ShardingAttr to, RankedTensorType type,
       function_ref<InFlightDiagnostic()> emitError);

  /// What that plan costs: the bytes that all ranks receive and the number of
  /// collectives; infinite where there is no plan.
  CommunicationCost getCost(ShardingAttr from, ShardingAttr to,
                            RankedTensorType type);

  /// How many placements the searches for plans have examined so far: a measure
  /// of their work that is the same on every machine.
  uint64_t getNumStates() const { return numStates; }

  /// What any plan costs at least, found without making one; the cost itself
  /// once that is known. Infinite where there is no plan.
  CommunicationCost getBound(ShardingAttr from, ShardingAttr to,
                             RankedTensorType type);

private:
  using Key = std::tuple<ShardingAttr, ShardingAttr, Type>;
  /// What a redistribution costs: small, as there are many.
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
  /// How many elements ranks have in their blocks by `a` and by `b`, summed
  /// over the ranks.
  int64_t getTotalShared(ArrayRef<int64_t> shape, ArrayRef<AxisListAttr> a,
                         ArrayRef<AxisListAttr> b);
  /// The same of a dimension, by rank.
  ArrayRef<int64_t> getShared(int64_t size, AxisListAttr a, AxisListAttr b);

  MeshOp mesh;
  RedistributionOptions options;
  uint64_t numStates = 0;
  DenseMap<Key, std::unique_ptr<RedistributionPlan>> plans;
  /// By source and type, then by target: targets are looked up in rows.
  DenseMap<std::pair<ShardingAttr, Type>,
           std::unique_ptr<DenseMap<ShardingAttr, Price>>>
      prices;
  DenseMap<std::tuple<int64_t, AxisListAttr, AxisListAttr>,
           SmallVector<int64_t, 0>>
      shared;
};

/// Whether a value placed as `from` can be placed as `to`; if not, the reason
/// goes to `emitError`.
LogicalResult
verifyRedistribution(ShardingAttr from, ShardingAttr to, MeshOp mesh,
                     function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::tp

#endif // TP_SHARDING_REDISTRIBUTION_REDISTRIBUTION_H
