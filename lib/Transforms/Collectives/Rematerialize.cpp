//===- Rematerialize.cpp - Gather again instead of keep -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gathered value is large and its block is small. Where too much is alive at
// once, a gathered value that isn't needed then is dropped and gathered again
// before its next use: memory for communication.
//
// What is alive is counted in the order in which the ops stand: from where a
// value is computed to its last use. Arguments, parameters and constants don't
// count, they are kept anyway. The value that saves most at the op with most
// alive goes first.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

class Rematerializing {
public:
  Rematerializing(Block &block, int64_t limit) : block(block), limit(limit) {}

  /// The bytes that are alive at once, and the op where.
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

  /// From where `value` is computed to its last use, as numbers of ops.
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
        change[range.first] += getNumBytes(result.getType());
        change[range.last + 1] -= getNumBytes(result.getType());
      }
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    change.pop_back();
    return change;
  }

  /// Shortens the life of one value at the peak; false when it is low enough,
  /// or nothing can be done.
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
      // One that was put before its first use already would only change places
      // with its neighbours.
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
          getNumBytes(gather.getType()) - getCostOfKeeping(gather, peak);
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

  /// What of the gathered block isn't alive at `peak` yet, and would be.
  int64_t getCostOfKeeping(AllGatherOp gather, int64_t peak) {
    Operation *producer = gather.getInput().getDefiningOp();
    if (!producer || producer->getBlock() != &block || !counts(*producer) ||
        getRange(gather.getInput()).last >= peak)
      return 0;
    return getNumBytes(gather.getInput().getType());
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
