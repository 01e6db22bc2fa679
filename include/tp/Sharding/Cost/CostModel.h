//===- CostModel.h - Costs of per-rank programs -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicts the seconds that ops and collectives take on a machine. The work and
// the memory traffic of an op follow from its sharding rule, never from its
// name:
//
// - Operands are combined one after the other. Each step runs over all factors
//   of the intermediate result and of the next operand. A factor that isn't
//   needed any more is then summed up: `(b k, n k) -> (b n)` is 2·b·n·k FLOPs,
//   attention `(t d, s d, s e) -> (t e)` is 2·t·s·d and 2·t·s·e.
// - An op of several contractions, without a window, is a chain, whose
//   intermediate results stay on the chip. If it is causal, it hides the scores
//   of its first operand's rows for later rows of the second one.
// - An integer operand beside operands of other types is an index if none of
//   these has all of its factors. The op then reads at most as many bytes of
//   each operand as the result has.
// - An op that only reorders or relabels its operand's elements costs nothing:
//   code generation reads through strides.
// - An elementwise op is fused into its only user if that is elementwise too,
//   or a reduction, softmax or norm: the value between them is neither written
//   nor read.
//
// An op takes the time of its arithmetic or of its memory traffic, whichever is
// longer, plus the time to launch it. How near these come to the device's peaks
// follows from the machine's `efficiency`. A collective takes the time that the
// links it crosses need for its messages (latency) and its bytes.
// docs/Prediction.md has the formulas.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_COST_COSTMODEL_H
#define TP_SHARDING_COST_COSTMODEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "tp/Sharding/RankClasses.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {

/// The work of one op of a per-rank program.
struct OpWork {
  double flops = 0;    ///< of contractions
  double elements = 0; ///< that other arithmetic computes
  int64_t bytes = 0;   ///< read from and written to memory
  /// The element type of the result; f32 if there is no result.
  Type element;
  /// Whether it runs no kernel of its own: a relabelling, a constant, or an op
  /// that is fused into its user.
  bool isFree = false;
  /// Of the products of a contraction: the smallest of m, n and k; 0 if it
  /// isn't known.
  double smallestExtent = 0;
  /// Whether it is a chain of contractions whose intermediate results stay on
  /// the chip, as those of attention.
  bool isChain = false;
  /// The share of a chain's products that a causal mask hides.
  double maskedShare = 0;
};

/// The work of `op`, which isn't a collective. If `fuses` is false, no op is
/// fused into its user, as in PyTorch without torch.compile.
OpWork getWork(Operation *op, bool fuses = true);

/// The seconds that `work` takes on a device of its own.
double getSeconds(const OpWork &work, const Machine &machine);

/// Calls `callback` for each op of `function` as often as it runs, in order.
/// Control flow counts as code generation emits it: loops of known length are
/// unrolled, and both branches of a condition run. Other loops count once.
void walkExecuted(func::FuncOp function,
                  function_ref<void(Operation *)> callback);

/// A sum of costs.
struct Cost {
  int64_t count = 0;
  double flops = 0;
  int64_t bytes = 0;
  double seconds = 0;

  Cost &operator+=(const Cost &other);
};

class CostModel {
public:
  CostModel(const Machine &machine, MeshOp mesh);

  double getSeconds(const OpWork &work) const;
  /// The machine's outermost link that `op` crosses on `rank`.
  size_t getOutermostLink(CollectiveOpInterface op, int64_t rank);
  /// The seconds that `op` takes on `rank`, once all ranks of its group have
  /// arrived.
  double getSeconds(CollectiveOpInterface op, int64_t rank);
  /// Splits the classes of `ranks`, which run the program that `op` is in, by
  /// the bytes that they receive and the seconds that it takes on them.
  void splitByCost(RankClasses &classes, CollectiveOpInterface op,
                   ArrayRef<int64_t> ranks);

private:
  /// The links that a group uses, as one of its ranks sees them.
  struct GroupLinks {
    size_t outermost = 0;
    /// By link: the members that are joined to the rank by inner links.
    SmallVector<int64_t, 4> within;
  };
  GroupLinks getGroupLinks(ArrayRef<int64_t> group, int64_t rank) const;
  /// By rank: numbers that are the same if the links of the groups over `axes`
  /// are.
  ArrayRef<int64_t> getLinkKinds(AxisListAttr axes);
  /// By rank: numbers that are the same if the links between the rank and all
  /// ranks that `op` may receive from are.
  SmallVector<int64_t> getSourceKinds(RankClasses &classes,
                                      CollectiveOpInterface op);

  const Machine &machine;
  MeshOp mesh;
  DenseMap<AxisListAttr, SmallVector<int64_t>> linkKinds;
  /// The ranks per device, and the memory bandwidth of a rank in bytes per
  /// second.
  double share, memoryBandwidth;
};

/// A program, and the ranks that run it.
struct ProgramPrediction {
  func::FuncOp program;
  SmallVector<int64_t> ranks;
  /// The compute by op and by module, and the collectives by module, with the
  /// seconds of the slowest rank.
  llvm::MapVector<StringRef, Cost> byOp, byModule, collectivesByModule;
  Cost compute;
};

/// One rank's seconds; `waiting` is the time it waits for ranks that arrive
/// later at a collective. The part of a started collective during which the rank
/// computes is in `compute` only.
struct RankPrediction {
  double compute = 0, collectives = 0, waiting = 0;
  double getTotal() const { return compute + collectives + waiting; }
};

/// A rank's part in a collective, in seconds from the start of the run: from
/// `arrival` it waits for the other ranks, and it communicates from `start` to
/// `end`.
struct CollectiveTimes {
  size_t id; ///< index in `Prediction::collectives`
  double arrival, start, end;
};

struct Prediction {
  SmallVector<ProgramPrediction> programs;
  /// The ranks that spend the same time in the same way.
  RankClasses classes;
  /// By class.
  SmallVector<RankPrediction> byClass;
  /// By class: when its ranks don't compute, in order, without overlaps. A
  /// started collective on a machine with `overlap` has an entry for the start,
  /// if that slows the rank down, and entries for the wait, if it isn't over.
  /// Any other collective has one, and one before it if the link isn't free.
  /// Those that a stage of a pipeline sends take no time, and aren't listed.
  SmallVector<SmallVector<CollectiveTimes>> timelines;
  /// By class: the started collectives on a machine with `overlap`, in the order
  /// of their starts. They arrive when their link is free.
  SmallVector<SmallVector<CollectiveTimes>> overlapped;
  /// Indexed by collective, in the order in which ranks issue them, then by
  /// class.
  SmallVector<SmallVector<double>> collectives;

  const RankPrediction &ofRank(int64_t rank) const {
    return byClass[classes.getClass(rank)];
  }
  ArrayRef<CollectiveTimes> getTimeline(int64_t rank) const {
    return timelines[classes.getClass(rank)];
  }
  ArrayRef<CollectiveTimes> getOverlapped(int64_t rank) const {
    return overlapped[classes.getClass(rank)];
  }

  /// The seconds until the last rank has finished.
  double getSeconds() const;
};

/// Predicts a run of `programs`, the per-rank programs of one function, which
/// have the same collectives in the same order. Fails with an error if the ranks
/// would wait for each other forever, or if a value that is sent isn't received:
/// then the program doesn't end, and has no time.
FailureOr<Prediction> predict(ArrayRef<func::FuncOp> programs, MeshOp mesh,
                              const Machine &machine);

} // namespace mlir::tp

#endif // TP_SHARDING_COST_COSTMODEL_H
