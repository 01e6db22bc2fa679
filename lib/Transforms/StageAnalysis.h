//===- StageAnalysis.h - The stages that ops run on -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An op has a home if its result depends on activations:
//
// - an op that is marked with a stage is at home there;
// - an unmarked op whose operands all come from one stage is at home there.
//
// All other ops run on each stage that needs them. These are ops with results
// that aren't tensors, parameters,
// constants, what is computed from them alone or from arguments and buffers
// alone (positions, masks, the learning rate), and what combines values of
// several stages (the norm of all gradients, the update of a tied weight).
//
// A value of an op with a home is passed to each other stage that needs it. So
// marks decide where a program computes and communicates, never what it
// computes.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_TRANSFORMS_STAGEANALYSIS_H
#define TP_LIB_TRANSFORMS_STAGEANALYSIS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tp {

class StageAnalysis {
public:
  /// Analyses `function`, a per-rank program of one block.
  StageAnalysis(func::FuncOp function, PipelineOp pipeline, int64_t numStages);

  /// The ops that `stage` runs, without the terminator, in order.
  ArrayRef<Operation *> getOps(int64_t stage) const { return ops[stage]; }
  /// The values that `from` passes to `to`, in the order in which `from`
  /// computes them.
  ArrayRef<Value> getPassed(int64_t from, int64_t to) const {
    return channels[from * numStages + to];
  }
  /// The stage that passes `value` to `stage`; nullopt if `stage` computes it.
  std::optional<int64_t> getSender(Value value, int64_t stage) const;
  /// Whether `stage` returns result `index`. All of them return scalars.
  bool returns(int64_t stage, unsigned index) const {
    return returned[index].test(stage);
  }
  /// The pass in which `stage` runs `op` (`tp.pass`).
  int64_t getPass(Operation *op, int64_t stage) const;

  /// Whether `to` receives `value` no later than in pass `pass`, the one in
  /// which it is sent.
  bool isReceivedInPass(Value value, int64_t to, int64_t pass) const {
    auto found = receivedIn.find({value, to});
    return found != receivedIn.end() && found->second == pass;
  }

  /// The values that `op` reads, including those read in its regions.
  static llvm::SetVector<Value> getReads(Operation *op);

private:
  struct Source {
    /// Where the op is at home; -1: on each stage that needs it.
    int64_t home = -1;
    /// The homes of what it is computed from.
    llvm::BitVector stages;
    bool hasArgument = false, hasParameter = false;
  };

  void findHomes();
  void findPasses();
  void findNeeded();
  void need(Value value, int64_t stage);
  void placeAssignments();
  void findSlots();
  void sortOps();
  void findReceipts();

  int64_t getHome(Value value) const;
  /// The earliest place in the order of `stage` at which `value` can be there.
  int64_t getSlot(Value value, int64_t stage) const;

  Block &block;
  PipelineOp pipeline;
  int64_t numStages;
  DenseMap<Operation *, int64_t> index;
  DenseMap<Operation *, Source> sources;
  /// By stage: the order of passes, and each pass's place in it.
  SmallVector<SmallVector<int64_t>> order, placeOf;
  /// By stage.
  SmallVector<llvm::SetVector<Operation *>> needed;
  SmallVector<DenseMap<Operation *, int64_t>> slots;
  SmallVector<SmallVector<Operation *>> ops;
  /// The stages that each value is passed to.
  DenseMap<Value, llvm::BitVector> passedTo;
  SmallVector<SmallVector<Value>> channels;
  /// The pass in which a stage first needs a value of another; not the values
  /// that it needs after its last pass.
  DenseMap<std::pair<Value, int64_t>, int64_t> receivedIn;
  /// By result: the stages that return it.
  SmallVector<llvm::BitVector> returned;
};

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_STAGEANALYSIS_H
