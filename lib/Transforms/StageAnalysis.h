//===- StageAnalysis.h - The stages that ops run on -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An op has a home, a stage, if its result depends on activations:
//
// - an op that is marked with a stage is at home there;
// - an unmarked op whose operands all come from one stage is at home there.
//
// All other ops run on each rank that needs them. These are ops with results
// that aren't tensors, parameters, constants, what is computed from them alone
// or from arguments and buffers alone (positions, masks, the learning rate), and
// what combines values of several stages (the norm of all gradients, the update
// of a tied weight).
//
// A value of an op with a home is passed to each rank that needs it and doesn't
// have its stage. So marks decide where a program computes and communicates,
// never what it computes.
//
// With several stages per rank, "rank" stands for an index along the pipeline's
// mesh dimension, and stage s is on rank s modulo the number of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_TRANSFORMS_STAGEANALYSIS_H
#define TP_LIB_TRANSFORMS_STAGEANALYSIS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/PipelineSchedule.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tp {

class StageAnalysis {
public:
  /// The step of what runs after the passes.
  static constexpr int64_t kAfterPasses = int64_t(1) << 48;

  /// Analyses `function`, a per-rank program of one block.
  StageAnalysis(func::FuncOp function, PipelineOp pipeline, MeshOp mesh);

  /// Whether all ranks get to the end of their passes. If not, nothing else can
  /// be asked.
  bool isValid() const { return !steps.empty(); }

  /// The ops that `rank` runs, without the terminator, in order.
  ArrayRef<Operation *> getOps(int64_t rank) const { return ops[rank]; }
  /// The values that `from` passes to `to`, in the order in which `from`
  /// computes them.
  ArrayRef<Value> getPassed(int64_t from, int64_t to) const {
    return channels[from * numRanks + to];
  }
  /// The rank that passes `value` to `rank`; nullopt if `rank` computes it.
  std::optional<int64_t> getSender(Value value, int64_t rank) const;
  /// Whether `rank` returns result `index`. All of them return scalars.
  bool returns(int64_t rank, unsigned index) const {
    return returned[index].test(rank);
  }

  /// The step (getPassSteps) in which `rank` runs `op`.
  int64_t getStep(Operation *op, int64_t rank) const {
    return getStepOfSlot(slots[rank].lookup(op), rank);
  }
  /// The step in which `rank` first reads `value`, which another one passes to
  /// it.
  int64_t getStepOfReceipt(Value value, int64_t rank) const;

  /// "stage 0 to 1, forward pass of microbatch 2", for a value that is passed
  /// to `rank`.
  std::string describeTransfer(Value value, int64_t rank) const;

  /// The values that `op` reads, including those read in its regions.
  static llvm::SetVector<Value> getReads(Operation *op);

private:
  struct Source {
    /// The stage where the op is at home; -1: on each rank that needs it.
    int64_t home = -1;
    /// The homes of what it is computed from.
    llvm::BitVector stages;
    bool hasArgument = false, hasParameter = false;
  };
  /// Where a rank first reads a value of another.
  struct Receipt {
    /// -1: in no stage, but after its last op that has a home.
    int64_t stage = -1;
    int64_t step = kAfterPasses;
  };

  void findHomes();
  void findPasses();
  void findAwaited();
  void findNeeded();
  void need(Value value, int64_t rank);
  void placeAssignments();
  void findSlots();
  void sortOps();
  void findReceipts();

  int64_t getRankOf(int64_t stage) const { return stage % numRanks; }
  int64_t getHome(Value value) const;
  /// The place of `op`'s own pass in the order of the rank of its home; 0 if it
  /// has no pass or no home.
  int64_t getOwnSlot(Operation *op) const;
  /// The earliest place in the order of `rank` at which `value` can be there.
  int64_t getSlot(Value value, int64_t rank) const;
  int64_t getStepOfSlot(int64_t slot, int64_t rank) const {
    return slot < static_cast<int64_t>(steps[rank].size()) ? steps[rank][slot]
                                                           : kAfterPasses;
  }

  Block &block;
  PipelineOp pipeline;
  int64_t numRanks, numStages, numMicrobatches = 0;
  DenseMap<Operation *, int64_t> index;
  DenseMap<Operation *, Source> sources;
  /// By rank: the order of passes, and the step of each.
  SmallVector<SmallVector<StagePass>> order;
  SmallVector<SmallVector<int64_t>> steps;
  /// By stage, microbatch and kind: the pass's place in the order of its rank.
  SmallVector<int64_t> placeOf;
  /// The ops that values of other stages depend on.
  DenseSet<Operation *> awaited;
  /// By rank.
  SmallVector<llvm::SetVector<Operation *>> needed;
  /// By rank: the place of each op in the order of passes; one past the last
  /// pass: after all of them.
  SmallVector<DenseMap<Operation *, int64_t>> slots;
  SmallVector<SmallVector<Operation *>> ops;
  /// The ranks that each value is passed to.
  DenseMap<Value, llvm::BitVector> passedTo;
  SmallVector<SmallVector<Value>> channels;
  DenseMap<std::pair<Value, int64_t>, Receipt> receipts;
  /// By result: the ranks that return it.
  SmallVector<llvm::BitVector> returned;
};

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_STAGEANALYSIS_H
