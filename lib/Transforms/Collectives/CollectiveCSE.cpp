//===- CollectiveCSE.cpp - Equal and unused collectives -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Collectives.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

/// Replaces an op by an equal one that has run before: earlier in the same
/// block, or in a block around it.
class CollectiveCSE {
public:
  void visit(Region &region) {
    for (Block &block : region) {
      SmallVector<Value> inserted;
      for (Operation &op : llvm::make_early_inc_range(block)) {
        for (Region &inner : op.getRegions())
          visit(inner);
        if (isa<CollectiveOpInterface, LocalSliceOp>(op))
          replace(&op, inserted);
      }
      for (Value operand : llvm::reverse(inserted))
        known[operand].pop_back();
    }
  }

  unsigned numReplaced = 0;

private:
  /// Whether two collectives compute the same from the same operand.
  static bool isSame(Operation *a, Operation *b) {
    return a->getName() == b->getName() &&
           a->getResultTypes() == b->getResultTypes() &&
           getMeaning(a) == getMeaning(b);
  }

  void replace(Operation *op, SmallVectorImpl<Value> &inserted) {
    // The body of a tp.start stays.
    if (isa<StartOp>(op->getParentOp()))
      return;
    auto &others = known[op->getOperand(0)];
    auto it = llvm::find_if(
        others, [&](Operation *other) { return isSame(other, op); });
    if (it == others.end()) {
      others.push_back(op);
      inserted.push_back(op->getOperand(0));
      return;
    }
    if (isa<CollectiveOpInterface>(op)) {
      remarkRewrite(op, "Shared", "shares an equal earlier collective");
      ++numReplaced;
    }
    op->replaceAllUsesWith(*it);
    op->erase();
  }

  DenseMap<Value, SmallVector<Operation *, 2>> known;
};

/// Erases unused pure ops. Returns the collectives that are left, in order.
SmallVector<CollectiveOpInterface> eraseUnusedPure(func::FuncOp program) {
  SmallVector<CollectiveOpInterface> left;
  program.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op->getNumResults() != 0 && op->use_empty() && isPure(op) &&
        !op->hasTrait<OpTrait::IsTerminator>())
      op->erase();
    else if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      left.push_back(collective);
  });
  std::reverse(left.begin(), left.end());
  return left;
}

} // namespace

unsigned collectives::eliminateCommonCollectives(func::FuncOp program) {
  CollectiveCSE cse;
  cse.visit(program.getBody());
  return cse.numReplaced;
}

unsigned collectives::eraseUnused(ArrayRef<func::FuncOp> programs) {
  auto lists = llvm::map_to_vector(programs, eraseUnusedPure);
  for (const auto &list : lists)
    if (list.size() != lists.front().size())
      return 0;
  unsigned numUnused = 0;
  for (size_t i = lists.front().size(); i-- > 0;) {
    if (!llvm::all_of(lists,
                      [&](const auto &list) { return list[i]->use_empty(); }))
      continue;
    ++numUnused;
    // Erase what only it used as well.
    for (const auto &list : lists) {
      SmallVector<Operation *> unused = {list[i]};
      while (!unused.empty()) {
        Operation *op = unused.pop_back_val();
        SmallVector<Value> operands(op->getOperands());
        op->erase();
        for (Value operand : operands)
          if (Operation *producer = operand.getDefiningOp())
            if (producer->use_empty() && isPure(producer) &&
                !llvm::is_contained(unused, producer))
              unused.push_back(producer);
      }
    }
  }
  return numUnused;
}
