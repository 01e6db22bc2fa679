//===- CostModel.h - What a per-rank program costs --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Seconds of ops and collectives on a machine. What an op computes and touches
// follows from its sharding rule, never from its name:
//
// - Operands are taken in one after the other. Each step runs over all factors
//   that what there is so far and the operand have; a factor that is needed no
//   more is summed up then: `(b k, n k) -> (b n)` is 2·b·n·k FLOPs, attention
//   `(t d, s d, s e) -> (t e)` is 2·t·s·d and 2·t·s·e.
// - An index, an integer operand beside others whose factors it hasn't,
// selects:
//   of the others only as much is touched as the result has elements.
// - An op that only reorders or relabels its operand's elements costs nothing:
//   code generation reads through strides.
// - An op without sums whose only user isn't a contraction is fused into it:
//   what goes between them is neither written nor read.
//
// An op takes as long as its arithmetic or its memory traffic, whichever is
// more, plus what launching it takes. A collective takes what the links that
// it crosses take for its messages (latency) and its bytes. docs/Prediction.md
// has the formulas.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_COST_COSTMODEL_H
#define TP_SHARDING_COST_COSTMODEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {

/// What one op of a per-rank program does.
struct OpWork {
  double flops = 0;    ///< of contractions
  double elements = 0; ///< that other arithmetic computes
  int64_t bytes = 0;   ///< read from and written to memory
  /// Of the result; f32 where there is none.
  Type element;
  /// Whether it does nothing by itself: a relabelling, a constant, or an op
  /// that runs within its user.
  bool isFree = false;
};

/// What `op`, any op but a collective, does.
OpWork getWork(Operation *op);

/// Calls `callback` for each op of `function` as often as it runs, in order.
/// What code generation makes of control flow counts: loops of known length are
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
  /// What `op` takes on `rank`, once all of its group are there.
  double getSeconds(CollectiveOpInterface op, int64_t rank);

private:
  const Machine &machine;
  MeshOp mesh;
  /// Ranks per device, and bytes per second that a rank gets of the memory.
  double share, memoryBandwidth;
};

/// A program, and the ranks that run it.
struct ProgramPrediction {
  func::FuncOp program;
  SmallVector<int64_t> ranks;
  /// Compute by op, by module; the seconds of collectives, of the slowest rank,
  /// are in `collectivesByModule`.
  llvm::MapVector<StringRef, Cost> byOp, byModule, collectivesByModule;
  Cost compute;
};

/// One rank's seconds; waiting is for ranks that come later to a collective.
struct RankPrediction {
  double compute = 0, collectives = 0, waiting = 0;
  double getTotal() const { return compute + collectives + waiting; }
};

struct Prediction {
  SmallVector<ProgramPrediction> programs;
  SmallVector<RankPrediction> ranks;
  /// By collective, in the order in which ranks issue them, then by rank.
  SmallVector<SmallVector<double>> collectives;

  /// Until the last rank has ended.
  double getSeconds() const;
};

/// Predicts a run of `programs`, which are those of one function and have the
/// same collectives in the same order.
Prediction predict(ArrayRef<func::FuncOp> programs, MeshOp mesh,
                   const Machine &machine);

} // namespace mlir::tp

#endif // TP_SHARDING_COST_COSTMODEL_H
