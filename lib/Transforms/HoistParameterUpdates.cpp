//===- HoistParameterUpdates.cpp - Early updates of parameters ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training step ends with its updates, so all gradients are kept until then.
// But an update needs only its parameter's gradient. This pass moves it to
// where the gradient is computed and no other op reads the parameter any more;
// it can then still work in the parameter's memory. If an update needs all
// gradients first, as with clipping, nothing moves. In a pipeline, no update
// moves before a value that is sent: the stage that receives it waits for it.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {
#define GEN_PASS_DEF_HOISTPARAMETERUPDATES
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class Scheduler {
public:
  explicit Scheduler(Block &block) : block(block) {}

  void run() {
    findUpdates();
    if (updates.empty())
      return;
    SmallVector<Operation *> all;
    for (Operation &op : block) {
      places[&op] = all.size();
      all.push_back(&op);
    }
    for (Operation *op : all)
      if (isFree(op))
        free.insert(op);
    findLastReads();
    int64_t lastSend = -1;
    for (auto [number, op] : llvm::enumerate(all)) {
      if (updates.contains(op) && !free.contains(op))
        placeBehindOperands(op, lastSend);
      if (sends(op))
        lastSend = number;
    }
    for (Operation *op : llvm::reverse(all))
      if (free.contains(op))
        placeBeforeUsers(op);
    // Ops that move behind the same op keep their order.
    llvm::MapVector<int64_t, SmallVector<Operation *>> behind;
    for (auto [number, op] : llvm::enumerate(all))
      if (places[op] < static_cast<int64_t>(number))
        behind[places[op]].push_back(op);
    for (auto &[number, ops] : behind) {
      Operation *last = all[number];
      for (Operation *op : ops) {
        op->moveAfter(last);
        last = op;
      }
    }
  }

private:
  /// Finds the ops that lead only to assignments. Collectives aren't pure and
  /// therefore stay.
  void findUpdates() {
    for (Operation &op : llvm::reverse(block))
      if (isa<AssignOpInterface>(op) ||
          (isPure(&op) && op.getNumRegions() == 0 && !op.use_empty() &&
           llvm::all_of(op.getUsers(), [&](Operation *user) {
             return updates.contains(user);
           })))
        updates.insert(&op);
  }

  void findLastReads() {
    for (auto parameter : block.getOps<ParameterOpInterface>()) {
      int64_t &last = lastReads[parameter.getFqnAttr()];
      last = std::max(last, getLastRead(parameter));
    }
  }

  /// The number of the last op, other than an update, that reads the result of
  /// `op`, directly or through free ops.
  int64_t getLastRead(Operation *op) const {
    int64_t last = 0;
    for (Operation *user : op->getUsers()) {
      Operation *reader = block.findAncestorOpInBlock(*user);
      if (updates.contains(reader))
        continue;
      last = std::max(last, places.lookup(reader));
      if (free.contains(reader))
        last = std::max(last, getLastRead(reader));
    }
    return last;
  }

  /// Whether `op` depends on nothing but constants and parameters.
  bool isFree(Operation *op) const {
    if (isa<ParameterOpInterface>(op))
      return true;
    return isPure(op) && op->getNumRegions() == 0 &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             return operand.getDefiningOp() &&
                    free.contains(operand.getDefiningOp());
           });
  }

  /// Whether another stage of a pipeline waits for `op`.
  static bool sends(Operation *op) {
    return op
        ->walk([](TransferOp transfer) {
          return transfer.isSent() ? WalkResult::interrupt()
                                   : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// `least` is the number of an op that `op` stays behind, or -1.
  void placeBehindOperands(Operation *op, int64_t least) {
    int64_t place = least;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp()) {
        if (!free.contains(producer))
          place = std::max(place, places.lookup(producer));
        // Other ops must have read the parameter before it is overwritten.
        if (auto parameter = dyn_cast<ParameterOpInterface>(producer))
          place = std::max(place, lastReads.lookup(parameter.getFqnAttr()));
      }
    if (place >= 0)
      places[op] = place;
  }

  void placeBeforeUsers(Operation *op) {
    for (Operation *user : op->getUsers())
      places[op] = std::min(places[op], places.lookup(user));
  }

  Block &block;
  DenseSet<Operation *> updates;
  /// The ops that depend on nothing but constants and parameters, such as
  /// scalars and the optimizer's state.
  DenseSet<Operation *> free;
  /// The number of each op or, for an op that moves, that of the op behind
  /// which it will stand.
  DenseMap<Operation *, int64_t> places;
  /// By FQN, the number of the last op that reads the parameter and isn't an
  /// update.
  DenseMap<Attribute, int64_t> lastReads;
};

struct HoistParameterUpdates
    : tp::impl::HoistParameterUpdatesBase<HoistParameterUpdates> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      Scheduler(block).run();
  }
};

} // namespace
