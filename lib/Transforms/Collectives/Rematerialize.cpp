//===- Rematerialize.cpp - Repeated gathers instead of kept values --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gathered value is large and its block is small. If too many bytes are alive
// at an op, a gathered value that isn't needed there is dropped and gathered
// again before its next use. This trades communication for memory.
//
// In program order, a value is alive from the op that computes it to its last
// use. Arguments, parameters and constants don't count, because they are kept
// anyway. The pass starts at the op where most bytes are alive, with the value
// that saves most there.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/Elements.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

class Rematerializing {
public:
  Rematerializing(Block &block, int64_t limit) : block(block), limit(limit) {}

  /// The most bytes that are alive at once, and the op where they are.
  MemoryPeak getPeak() {
    SmallVector<int64_t> alive = getAlive();
    if (alive.empty())
      return {};
    auto *peak = llvm::max_element(alive);
    return {*peak, &*std::next(block.begin(), peak - alive.begin())};
  }

  unsigned run() {
    unsigned numAgain = 0;
    while (gatherOnceMore())
      ++numAgain;
    return numAgain;
  }

private:
  struct Range {
    int64_t first, last;
  };

  static bool counts(Operation &op) {
    return op.getNumOperands() != 0 || op.getNumRegions() != 0;
  }

  /// The number of the op that computes `value` and that of its last use.
  Range getRange(Value value) {
    Range range{numbers.lookup(value.getDefiningOp()), 0};
    range.last = range.first;
    for (Operation *user : value.getUsers())
      range.last = std::max(range.last, getNumber(user));
    return range;
  }

  int64_t getNumber(Operation *user) {
    return numbers.lookup(getAncestor(&block, user));
  }

  /// The bytes that are alive at each op.
  SmallVector<int64_t> getAlive() {
    numbers.clear();
    int64_t count = 0;
    for (Operation &op : block)
      numbers[&op] = count++;
    SmallVector<int64_t> change(count + 1, 0);
    for (Operation &op : block) {
      if (!counts(op))
        continue;
      for (Value result : op.getResults()) {
        if (!isa<RankedTensorType>(result.getType()))
          continue;
        Range range = getRange(result);
        change[range.first] += getTensorBytes(result.getType());
        change[range.last + 1] -= getTensorBytes(result.getType());
      }
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    change.pop_back();
    return change;
  }

  /// Drops one value at the peak; false if the peak is low enough or no value
  /// can be dropped.
  bool gatherOnceMore() {
    SmallVector<int64_t> alive = getAlive();
    if (alive.empty())
      return false;
    int64_t peak = std::distance(alive.begin(), llvm::max_element(alive));
    if (alive[peak] <= limit)
      return false;
    AllGatherOp best;
    int64_t mostSaved = 0;
    for (auto gather : block.getOps<AllGatherOp>()) {
      Range range = getRange(gather);
      // A gather that was already moved right before its first use would only
      // change places with its neighbors.
      if (range.first >= peak || range.last <= peak ||
          (again.contains(gather) && llvm::none_of(gather->getUsers(),
                                                   [&](Operation *user) {
                                                     return getNumber(user) <
                                                            peak;
                                                   })) ||
          llvm::any_of(gather->getUsers(), [&](Operation *user) {
            return getNumber(user) == peak;
          }))
        continue;
      int64_t saved =
          getTensorBytes(gather.getType()) - getCostOfKeeping(gather, peak);
      if (saved > mostSaved) {
        best = gather;
        mostSaved = saved;
      }
    }
    if (!best)
      return false;
    gatherAfter(best, peak);
    return true;
  }

  /// The bytes of the gather's operand, if it isn't alive at `peak` yet but
  /// would be.
  int64_t getCostOfKeeping(AllGatherOp gather, int64_t peak) {
    Operation *producer = gather.getInput().getDefiningOp();
    if (!producer || producer->getBlock() != &block || !counts(*producer) ||
        getRange(gather.getInput()).last >= peak)
      return 0;
    return getTensorBytes(gather.getInput().getType());
  }

  void gatherAfter(AllGatherOp gather, int64_t peak) {
    SmallVector<OpOperand *> late;
    Operation *first = nullptr;
    for (OpOperand &use : gather->getUses()) {
      Operation *user = getAncestor(&block, use.getOwner());
      if (numbers.lookup(user) < peak)
        continue;
      late.push_back(&use);
      if (!first || user->isBeforeInBlock(first))
        first = user;
    }
    remarkRewrite(gather, "Rematerialize", "gathered again for later uses");
    OpBuilder builder(first);
    Operation *copy = builder.clone(*gather);
    again.insert(copy);
    for (OpOperand *use : late)
      use->set(copy->getResult(0));
  }

  Block &block;
  int64_t limit;
  DenseMap<Operation *, int64_t> numbers;
  /// The gathers that were issued again.
  llvm::SmallPtrSet<Operation *, 8> again;
};

} // namespace

MemoryPeak collectives::getMemoryPeak(func::FuncOp program) {
  MemoryPeak peak;
  program.walk([&](Block *block) {
    if (isa<StartOp>(block->getParentOp()))
      return;
    MemoryPeak own = Rematerializing(*block, 0).getPeak();
    if (own.bytes > peak.bytes)
      peak = own;
  });
  return peak;
}

unsigned collectives::rematerialize(func::FuncOp program, int64_t bytes) {
  unsigned numAgain = 0;
  program.walk([&](Block *block) {
    if (!isa<StartOp>(block->getParentOp()))
      numAgain += Rematerializing(*block, bytes).run();
  });
  return numAgain;
}
