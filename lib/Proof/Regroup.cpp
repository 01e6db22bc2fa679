//===- Regroup.cpp - Sums of Partial terms and others ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Regroup.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "tp/Transforms/Sums.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;

/// `op` if trees may contain it, or null.
static ShardingRuleOpInterface getLinear(Operation *op) {
  auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op);
  bool isTensorOp = ruleOp && op->getNumResults() == 1 &&
                    op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
                    !isDraw(op) &&
                    isa<RankedTensorType>(op->getResult(0).getType());
  return isTensorOp ? ruleOp : ShardingRuleOpInterface();
}

/// The ops of trees with fresh leaves, in order.
SmallVector<Operation *> Regrouping::findTouched() {
  llvm::MapVector<Block *, SmallVector<Operation *>> byBlock;
  DenseSet<Operation *> seen;
  auto touch = [&](Operation *op) {
    while (op && getLinear(op) && seen.insert(op).second) {
      byBlock[op->getBlock()].push_back(op);
      op = graph.get(graph.getId(op->getResult(0))).getOnlyUser();
    }
  };
  for (ReferenceGraph::Id leaf : std::exchange(fresh, {}))
    for (Operation *user : graph.get(leaf).users)
      if (!graph.isForm(user))
        touch(user);
  SmallVector<Operation *> touched;
  for (auto &[block, ops] : byBlock) {
    llvm::sort(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    llvm::append_range(touched, ops);
  }
  return touched;
}

SmallVector<Operation *> Regrouping::run() {
  for (Operation *op : findTouched())
    addForms(op);
  return std::exchange(added, {});
}

std::optional<Regrouping::Terms> Regrouping::getTerms(Value value) const {
  ReferenceGraph::Id id = graph.getId(value);
  auto it = computed.find(id);
  // A Partial value is a leaf, even if a tree computes it.
  if (partial.contains(id))
    return Terms{graph.get(id).value,
                 {},
                 it == computed.end() ? SmallVector<Operation *, 1>()
                                      : it->second.sums};
  // A value with several users is a leaf without a Partial term for them.
  if (it == computed.end() || !graph.get(id).getOnlyUser())
    return std::nullopt;
  return it->second;
}

void Regrouping::addForms(Operation *op) {
  ShardingRule rule = getLinear(op).getShardingRule();
  ReferenceGraph::Id id = graph.getId(op->getResult(0));
  if (graph.get(id).isLocal)
    return;
  SmallVector<Terms> terms(op->getNumOperands());
  llvm::SmallBitVector summed(op->getNumOperands());
  bool hasPartial = false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (auto known = getTerms(operand)) {
      terms[i] = *known;
      summed.set(i);
      hasPartial = true;
    }
  auto once = ArrayRef(rule.linearSets).take_back(rule.numOnce);
  auto holds = [&](const LinearSet &set) {
    llvm::SmallBitVector rest = summed;
    for (unsigned i : set) {
      if (i >= summed.size())
        return false;
      rest.reset(i);
    }
    return rest.none() &&
           llvm::any_of(set, [&](unsigned i) { return summed.test(i); });
  };
  auto sets = ArrayRef(rule.linearSets).drop_back(rule.numOnce);
  auto set = llvm::find_if(sets, holds);
  if (!hasPartial || set == sets.end())
    return;
  // The other operands in the set have no Partial term.
  bool hasWhole = false;
  for (unsigned i : *set) {
    if (!summed.test(i))
      terms[i].whole = graph.get(graph.getId(op->getOperand(i))).value;
    hasWhole |= bool(terms[i].whole);
  }
  Terms own;
  bool isSum = !once.empty();
  if (isSum)
    own.sums.push_back(op);
  for (const Terms &each : terms)
    for (Operation *sum : each.sums)
      if (llvm::none_of(own.sums, [&](Operation *other) {
            return other->getName() == sum->getName() &&
                   getMeaning(other) == getMeaning(sum);
          }))
        own.sums.push_back(sum);
  if (!hasWhole || partial.contains(id)) {
    own.partial = graph.get(id).value;
    computed[id] = own;
    return;
  }
  auto part = [&](auto member) {
    SmallVector<Value> values;
    for (const Terms &each : terms)
      values.push_back(each.*member);
    return build(op, *set, std::move(values), isSum);
  };
  own.partial = part(&Terms::partial);
  own.whole = part(&Terms::whole);
  // A program may add the two terms by any of the tree's kinds of sum.
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  OpBuilder builder = OpBuilder::atBlockEnd(graph.getFormBlock());
  for (Operation *sum : own.sums) {
    if (!canTotal(sum, type.getElementType()))
      continue;
    Operation *last = getLast();
    Value addend = buildAddend(builder, graph.getTensors(), sum, own.partial);
    buildTotal(builder, graph.getTensors(), sum, own.whole, addend, type);
    addBuilt(last, op->getResult(0));
  }
  computed[id] = own;
}

/// Builds `op` with `terms` as its operands in `set`; a null term is zero.
Value Regrouping::build(Operation *op, ArrayRef<unsigned> set,
                        SmallVector<Value> terms, bool isSum) {
  auto isThere = [&](unsigned i) { return bool(terms[i]); };
  if (isSum && llvm::count_if(set, isThere) == 1) {
    // Nothing is added or subtracted.
    unsigned only = *llvm::find_if(set, isThere);
    if (only == 0 || op->hasTrait<OpTrait::IsCommutative>())
      return terms[only];
  }
  OpBuilder builder = OpBuilder::atBlockEnd(graph.getFormBlock());
  Operation *last = getLast();
  auto getType = [](Value value) {
    return value ? cast<RankedTensorType>(value.getType()) : RankedTensorType();
  };
  if (isSum) {
    buildSum(builder, graph.getTensors(), op, terms[0], terms[1],
             getSumType(getType(terms[0]), getType(terms[1])));
    return addBuilt(last);
  }
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    RankedTensorType own = getType(operand);
    if (!llvm::is_contained(set, i))
      operands.push_back(graph.get(graph.getId(operand)).value);
    else if (!terms[i])
      operands.push_back(buildZero(builder, graph.getTensors(), op, own));
    else if (terms[i].getType() != own)
      operands.push_back(
          graph.getTensors().broadcast(builder, op->getLoc(), terms[i], own));
    else
      operands.push_back(terms[i]);
  }
  if (failed(clonePartitioned(op, builder, operands, op->getResultTypes())))
    llvm_unreachable("a clone can't fail");
  return addBuilt(last);
}

Operation *Regrouping::getLast() const {
  Block *block = graph.getFormBlock();
  return block->empty() ? nullptr : &block->back();
}

/// Adds the ops that were built after `before` to the reference. `same`, if
/// given, is the last one's result. Returns the value that the last one
/// computes.
Value Regrouping::addBuilt(Operation *before, Value same) {
  Operation *last = getLast();
  for (Operation *op = before ? before->getNextNode()
                              : &graph.getFormBlock()->front();
       op; op = op->getNextNode()) {
    if (graph.addForm(op, op == last ? same : Value()))
      added.push_back(op);
    // The only constants that are built are zeros.
    if (ReferenceGraph::Id id = graph.getId(op->getResult(0));
        op->hasTrait<OpTrait::ConstantLike>() && zeros.insert(id).second)
      freshZeros.push_back(id);
  }
  return graph.get(graph.getId(last->getResult(0))).value;
}
