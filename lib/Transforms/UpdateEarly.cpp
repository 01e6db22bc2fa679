//===- UpdateEarly.cpp - Update parameters as soon as can be --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training step ends with its updates, so that all gradients are kept until
// then. An update needs its parameter's gradient only: here it is done when
// that is there and no other op reads the parameter any more, so that it still
// takes place in the parameter's memory. Where all gradients are needed first,
// as for clipping, nothing moves.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {
#define GEN_PASS_DEF_UPDATEEARLY
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
    for (Operation *op : all)
      if (updates.contains(op) && !free.contains(op))
        placeBehindOperands(op);
    for (Operation *op : llvm::reverse(all))
      if (free.contains(op))
        placeBeforeUsers(op);
    // In the order of before where they stand behind one op.
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
  /// Ops that lead to nothing but assignments. Collectives, which aren't pure,
  /// keep their order.
  void findUpdates() {
    for (Operation &op : llvm::reverse(block))
      if (isa<nn::AssignOp>(op) ||
          (isPure(&op) && op.getNumRegions() == 0 && !op.use_empty() &&
           llvm::all_of(op.getUsers(), [&](Operation *user) {
             return updates.contains(user);
           })))
        updates.insert(&op);
  }

  void findLastReads() {
    for (auto parameter : block.getOps<nn::ParameterOp>()) {
      int64_t &last = lastReads[parameter.getFqnAttr()];
      last = std::max(last, getLastRead(parameter));
    }
  }

  /// The last op that reads what `op` gives, or a view of it, and is no update.
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
    if (isa<nn::ParameterOp>(op))
      return true;
    return isPure(op) && op->getNumRegions() == 0 &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             return operand.getDefiningOp() &&
                    free.contains(operand.getDefiningOp());
           });
  }

  void placeBehindOperands(Operation *op) {
    int64_t place = -1;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp()) {
        if (!free.contains(producer))
          place = std::max(place, places.lookup(producer));
        // Not before others have read what it will overwrite.
        if (auto parameter = dyn_cast<nn::ParameterOp>(producer))
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
  /// Those of the updates that depend on nothing but what is among them:
  /// scalars and the optimizer's state.
  DenseSet<Operation *> free;
  /// The number of each op; of an update, that of the op that it will stand
  /// behind.
  DenseMap<Operation *, int64_t> places;
  /// By FQN, the last op that reads the parameter and is no update.
  DenseMap<Attribute, int64_t> lastReads;
};

struct UpdateEarly : tp::impl::UpdateEarlyBase<UpdateEarly> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      Scheduler(block).run();
  }
};

} // namespace
