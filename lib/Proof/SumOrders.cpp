//===- SumOrders.cpp - Sums in the order of the programs ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SumOrders.h"
#include "ScalarCode.h"
#include "mlir/Dialect/Traits.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Sums.h"

using namespace mlir;
using namespace mlir::tp;

/// A sum with more terms, or more equal ones, is treated as a term itself.
static constexpr size_t kMaxTerms = 1024;
static constexpr int64_t kMaxTimes = 1 << 20;

bool SumOrders::isSum(Operation *op) {
  auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruleOp || op->getNumOperands() != 2 || op->getNumResults() != 1 ||
      op->getNumRegions() || exact::assumesFinite(op) ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  Type element = getElementTypeOrSelf(op->getResult(0));
  return llvm::all_of(op->getOperandTypes(),
                      [&](Type type) {
                        return getElementTypeOrSelf(type) == element;
                      }) &&
         ruleOp.getShardingRule().numOnce != 0;
}

std::optional<SumOrders::Terms> SumOrders::combine(Terms a, const Terms &b,
                                                   int64_t sign) {
  for (auto [id, times] : b) {
    int64_t &own = a[id];
    if (own != 0 && (own > 0) != (sign * times > 0))
      return std::nullopt;
    own += sign * times;
  }
  return a;
}

const SumOrders::Terms &SumOrders::getTerms(ReferenceGraph::Id id) {
  std::unique_ptr<Terms> &found = computed[id];
  if (found)
    return *found;
  auto terms = std::make_unique<Terms>(Terms{{id, 1}});
  Operation *op = graph.get(id).value.getDefiningOp();
  if (op && isSum(op)) {
    const Terms &a = getTerms(graph.getId(op->getOperand(0)));
    const Terms &b = getTerms(graph.getId(op->getOperand(1)));
    std::optional<Terms> sum =
        combine(a, b, op->hasTrait<OpTrait::IsCommutative>() ? 1 : -1);
    if (sum && sum->size() <= kMaxTerms && llvm::all_of(*sum, [](auto &term) {
          return std::abs(term.second) <= kMaxTimes;
        }))
      *terms = std::move(*sum);
  }
  // `found` may be dangling, because the map may have grown.
  return *(computed[id] = std::move(terms));
}

/// Whether `sign` times `part` and other terms make up `whole`.
bool SumOrders::isPart(const Terms &part, const Terms &whole, int64_t sign) {
  return llvm::all_of(part, [&](auto &term) {
    auto it = whole.find(term.first);
    if (it == whole.end())
      return false;
    int64_t times = sign * term.second;
    return it->second > 0 ? times > 0 && times <= it->second
                          : times < 0 && times >= it->second;
  });
}

/// A sum of the reference that `terms` are a part of; `same` is its value if it
/// has no other terms.
Operation *SumOrders::findWhole(const Terms &terms, RankedTensorType type,
                                Value &same) {
  Operation *whole = nullptr;
  DenseSet<ReferenceGraph::Id> seen;
  SmallVector<ReferenceGraph::Id> worklist = {terms.rbegin()->first};
  while (!worklist.empty()) {
    ReferenceGraph::Id id = worklist.pop_back_val();
    if (!seen.insert(id).second)
      continue;
    const ReferenceGraph::Entry &entry = graph.get(id);
    if (Operation *op = entry.value.getDefiningOp(); op && isSum(op)) {
      const Terms &own = getTerms(id);
      if (own == terms && entry.value.getType() == type) {
        same = entry.value;
        return op;
      }
      if (!whole && (isPart(terms, own, 1) || isPart(terms, own, -1)))
        whole = op;
    }
    for (Operation *user : entry.users)
      if (isSum(user))
        worklist.push_back(graph.getId(user->getResult(0)));
  }
  return whole;
}

Operation *SumOrders::addForm(Operation *like, ReferenceGraph::Id a,
                              ReferenceGraph::Id b) {
  RankedTensorType types[] = {graph.getType(a), graph.getType(b)};
  Type element = getElementTypeOrSelf(like->getResult(0));
  SmallVector<int64_t> shape;
  if (!types[0] || !types[1] || types[0].getElementType() != element ||
      types[1].getElementType() != element ||
      !OpTrait::util::getBroadcastedShape(types[0].getShape(),
                                          types[1].getShape(), shape) ||
      graph.get(a).isLocal || graph.get(b).isLocal)
    return nullptr;
  auto type = RankedTensorType::get(shape, element);
  // Only sums of nn broadcast.
  if (!like->hasTrait<OpTrait::ResultsBroadcastableShape>() &&
      types[0] != types[1])
    return nullptr;
  Terms first = getTerms(a);
  std::optional<Terms> terms =
      combine(std::move(first), getTerms(b),
              like->hasTrait<OpTrait::IsCommutative>() ? 1 : -1);
  Value same;
  Operation *whole = terms ? findWhole(*terms, type, same) : nullptr;
  if (!whole || !built.insert({like, a, b}).second)
    return nullptr;
  OpBuilder builder = OpBuilder::atBlockEnd(graph.getFormBlock());
  Operation *form = buildSum(builder, graph.getTensors(), like,
                             graph.get(a).value, graph.get(b).value, type)
                        .getDefiningOp();
  form->setLoc(whole->getLoc());
  return graph.addForm(form, same) ? form : nullptr;
}
