//===- Regroup.cpp - Sums of what is partial and what is whole ------------===//

#include "Regroup.h"
#include "mlir/Dialect/Traits.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/NN/NN.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;

/// An op that trees may consist of.
static ShardingRuleOpInterface getLinear(Operation *op) {
  auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op);
  bool isTensorOp = ruleOp && op->getNumResults() == 1 &&
                    op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
                    isa<RankedTensorType>(op->getResult(0).getType());
  return isTensorOp ? ruleOp : ShardingRuleOpInterface();
}

/// The op that uses `value`, if it is one and the value isn't returned; forms
/// left out.
Operation *Regrouping::getOnlyUser(ReferenceGraph::Id value) const {
  Operation *only = nullptr;
  for (Operation *user : graph.get(value).users) {
    if (graph.isForm(user))
      continue;
    if (only)
      return nullptr;
    only = user;
  }
  return llvm::is_contained(graph.getResults(), value) ? nullptr : only;
}

/// The ops of trees with fresh leaves, in order.
SmallVector<Operation *> Regrouping::findTouched() {
  llvm::MapVector<Block *, SmallVector<Operation *>> byBlock;
  DenseSet<Operation *> seen;
  auto touch = [&](Operation *op) {
    while (op && getLinear(op) && seen.insert(op).second) {
      byBlock[op->getBlock()].push_back(op);
      op = getOnlyUser(graph.getId(op->getResult(0)));
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
  if (partial.contains(id))
    return Terms{graph.get(id).value, {}};
  auto it = computed.find(id);
  return it == computed.end() ? std::nullopt : std::optional(it->second);
}

void Regrouping::addForms(Operation *op) {
  ShardingRule rule = getLinear(op).getShardingRule();
  ReferenceGraph::Id id = graph.getId(op->getResult(0));
  if (partial.contains(id) || graph.get(id).isLocal)
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
  // The others in the set are whole.
  bool hasWhole = false;
  for (unsigned i : *set) {
    if (!summed.test(i))
      terms[i].whole = graph.get(graph.getId(op->getOperand(i))).value;
    hasWhole |= bool(terms[i].whole);
  }
  if (!hasWhole) {
    computed[id] = {graph.get(id).value, {}};
    return;
  }
  bool isSum = !once.empty();
  auto part = [&](auto member) {
    SmallVector<Value> values;
    for (const Terms &each : terms)
      values.push_back(each.*member);
    return build(op, *set, std::move(values), isSum);
  };
  Terms own = {part(&Terms::partial), part(&Terms::whole)};
  OpBuilder builder = OpBuilder::atBlockEnd(graph.getFormBlock());
  add(nn::AddOp::create(builder, op->getLoc(), op->getResult(0).getType(),
                        own.whole, own.partial),
      op->getResult(0));
  computed[id] = own;
}

/// `op` with `terms` for its operands in `set`; those that are null are zero.
Value Regrouping::build(Operation *op, ArrayRef<unsigned> set,
                        SmallVector<Value> terms, bool isSum) {
  auto isThere = [&](unsigned i) { return bool(terms[i]); };
  if (isSum && llvm::count_if(set, isThere) == 1) {
    // Nothing is added, or taken away.
    unsigned only = *llvm::find_if(set, isThere);
    if (only == 0 || op->hasTrait<OpTrait::IsCommutative>())
      return terms[only];
  }
  OpBuilder builder = OpBuilder::atBlockEnd(graph.getFormBlock());
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Value> operands;
  SmallVector<int64_t> shape;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (!llvm::is_contained(set, i)) {
      operands.push_back(graph.get(graph.getId(operand)).value);
      continue;
    }
    auto own = cast<RankedTensorType>(operand.getType());
    Value term = terms[i];
    if (!term) {
      auto zero = isSum ? RankedTensorType::get({}, own.getElementType()) : own;
      term = add(nn::ConstantOp::create(
          builder, op->getLoc(),
          cast<ElementsAttr>(builder.getZeroAttr(zero))));
      zeros.insert(graph.getId(term));
    } else if (!isSum && term.getType() != own) {
      term = add(nn::BroadcastOp::create(builder, op->getLoc(), own, term));
    }
    operands.push_back(term);
    SmallVector<int64_t> before = std::exchange(shape, {});
    OpTrait::util::getBroadcastedShape(
        before, cast<RankedTensorType>(term.getType()).getShape(), shape);
  }
  if (isSum)
    type = type.clone(shape);
  FailureOr<SmallVector<Value>> built =
      clonePartitioned(op, builder, operands, type);
  return add(built->front().getDefiningOp());
}

/// Adds `op`, whose result is `same`, if that is given, to the reference; gives
/// the value that it computes.
Value Regrouping::add(Operation *op, Value same) {
  if (graph.addForm(op, same))
    added.push_back(op);
  return graph.get(graph.getId(op->getResult(0))).value;
}
