//===- Redistribution.h - From one placement to another ---------*- C++ -*-===//
//
// The one place that decides which collectives lead from one placement of a
// tensor to another, and what that costs.
//
//===----------------------------------------------------------------------===//

#ifndef TP_ANALYSIS_REDISTRIBUTION_H
#define TP_ANALYSIS_REDISTRIBUTION_H

#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// One step of a redistribution, over a group that `axes` span.
struct RedistributionStep {
  enum Kind { LocalSlice, AllGather, AllReduce, ReduceScatter, AllToAll };
  Kind kind;
  SmallVector<AxisRefAttr> axes;
  /// The dimension that is sliced, gathered or scattered; of an all-to-all, the
  /// one that is split.
  int64_t dim = 0;
  /// Of an all-to-all, the dimension that is put together.
  int64_t concatDim = 0;
  ReductionKind reduction = ReductionKind::Sum;
  /// The placement after this step.
  ShardingAttr result = {};
};

/// The steps from `from` to `to`: local slices as soon as they are possible,
/// all-to-all where a split moves between dimensions, reduce-scatter where a
/// Partial becomes a split, gathers for the rest. Mesh dimensions of size 1 need
/// no step. Fails, with the reason given to `emitError`, where `to` is Partial
/// over a mesh dimension that `from` is not, or with another reduction.
FailureOr<SmallVector<RedistributionStep>>
planRedistribution(ShardingAttr from, ShardingAttr to, MeshOp mesh,
                   function_ref<InFlightDiagnostic()> emitError);

/// What a redistribution costs: bytes that a rank receives, then the number of
/// collectives. Compares in this order.
struct RedistributionCost {
  double bytes = 0;
  int64_t collectives = 0;

  RedistributionCost &operator+=(const RedistributionCost &other) {
    bytes += other.bytes;
    collectives += other.collectives;
    return *this;
  }
  friend bool operator<(const RedistributionCost &a,
                        const RedistributionCost &b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes
                              : a.collectives < b.collectives;
  }
};

/// The cost over the mesh dimension `axis` alone of placing a tensor of
/// `numBytes` bytes (the whole of it) from `from` to `to`; nullopt where that
/// can't be done.
std::optional<RedistributionCost>
getAxisCost(ShardingAttr from, ShardingAttr to, StringRef axis,
            int64_t axisSize, double numBytes);

} // namespace mlir::tp

#endif // TP_ANALYSIS_REDISTRIBUTION_H
