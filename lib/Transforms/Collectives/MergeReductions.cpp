//===- MergeReductions.cpp - Sums are taken once, where they are smallest -===//
//
// A linear op of sums is the sum of the op: an all_reduce may as well stand
// after it. Where the op has several summed operands, one all_reduce then takes
// the place of several: of the gradients of a value that three projections use,
// say, the sum is reduced and not each. By its sharding rule an op is linear in
// a set of operands while the others are the same on all ranks of the group.
//
// Ops whose summed operands have no other use form trees, with all_reduces as
// leaves. A value in such a tree is either reduced where it is computed or is
// computed from reduced ones; whichever moves fewer bytes, and then is fewer
// collectives, is found from the leaves on. Of equals, what is there stays.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

/// Bytes, collectives.
using Cost = std::pair<int64_t, int64_t>;

Cost operator+(Cost a, Cost b) {
  return {a.first + b.first, a.second + b.second};
}

/// A value that is a sum over ranks, or linear in such.
struct Node {
  /// Over which group.
  FlatSymbolRefAttr mesh;
  AxisListAttr axes;
  /// The values that it is linear in; none for an all_reduce.
  SmallVector<Value, 2> summed;
  Cost reducedAbove, best;
  bool isRoot = true;

  bool isReducedHere() const { return summed.empty() || best < reducedAbove; }
};

class Merging {
public:
  explicit Merging(Uniformity &uniformity) : uniformity(uniformity) {}

  unsigned run(func::FuncOp program) {
    program.walk([&](Operation *op) { visit(op); });
    unsigned numSaved = 0;
    for (auto &[value, node] : nodes)
      if (node.isRoot)
        numSaved += realize(value);
    return numSaved;
  }

private:
  static Cost getCost(Value value) { return {getNumBytes(value.getType()), 1}; }

  void visit(Operation *op) {
    if (auto reduce = dyn_cast<AllReduceOp>(op)) {
      if (reduce.getKind() != ReductionKind::Sum ||
          isa<StartOp>(reduce->getParentOp()))
        return;
      Node node{reduce.getMeshAttr(), reduce.getAxes(), {}, {}, {}};
      node.reducedAbove = node.best = getCost(reduce);
      nodes[reduce] = std::move(node);
      return;
    }
    if (llvm::none_of(op->getOperands(),
                      [&](Value v) { return getNode(v, op); }))
      return;
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op->getNumResults() != 1 || !isMemoryEffectFree(op) ||
        !isa<RankedTensorType>(op->getResult(0).getType()))
      return;
    ShardingRule rule = ruled.getShardingRule();
    // In the sets that count once, the other operands are taken from one rank.
    for (const LinearSet &set :
         ArrayRef(rule.linearSets).drop_back(rule.numOnce))
      if (addNode(op, set))
        return;
  }

  /// The node of an operand of `op` that nothing else uses.
  Node *getNode(Value value, Operation *op) {
    if (!value.hasOneUse())
      return nullptr;
    auto it = nodes.find(value);
    if (it == nodes.end() || value.getParentBlock() != op->getBlock())
      return nullptr;
    return &it->second;
  }

  /// Whether `op` is linear in sums, those of the operands in `set`.
  bool addNode(Operation *op, const LinearSet &set) {
    if (set.empty())
      return false;
    Node node;
    Node *first = nullptr;
    for (unsigned i : set) {
      Node *summand =
          i < op->getNumOperands() ? getNode(op->getOperand(i), op) : nullptr;
      if (!summand)
        return false;
      first = first ? first : summand;
      if (summand->mesh != first->mesh || summand->axes != first->axes)
        return false;
      node.summed.push_back(op->getOperand(i));
      node.reducedAbove = node.reducedAbove + summand->best;
    }
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (!llvm::is_contained(set, i) &&
          !uniformity.isUniform(operand, first->axes.getAxes()))
        return false;
    node.mesh = first->mesh;
    node.axes = first->axes;
    node.best = std::min(node.reducedAbove, getCost(op->getResult(0)));
    for (Value value : node.summed)
      nodes[value].isRoot = false;
    nodes[op->getResult(0)] = std::move(node);
    return true;
  }

  /// Puts the all_reduces for `value` where they cost least.
  unsigned realize(Value value) {
    unsigned numSaved = 0;
    SmallVector<Value> worklist = {value};
    while (!worklist.empty()) {
      Value next = worklist.pop_back_val();
      const Node &node = nodes[next];
      if (node.summed.empty())
        continue;
      if (node.isReducedHere())
        numSaved += reduceHere(next, node);
      else
        llvm::append_range(worklist, node.summed);
    }
    return numSaved;
  }

  /// Takes the all_reduces above `value` away and reduces it instead.
  unsigned reduceHere(Value value, const Node &node) {
    SmallVector<CollectiveOpInterface> replaced;
    SmallVector<Value> worklist = {value};
    while (!worklist.empty()) {
      Value next = worklist.pop_back_val();
      if (auto reduce = next.getDefiningOp<AllReduceOp>())
        replaced.push_back(reduce);
      else
        llvm::append_range(worklist, llvm::reverse(nodes[next].summed));
    }
    remarkRewrite(replaced.front(), "MergeReductions",
                  std::to_string(replaced.size()) +
                      " all_reduce become one of what is linear in them");
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfter(value.getDefiningOp());
    auto reduce = AllReduceOp::create(
        builder, replaced.back().getLoc(), value, ReductionKind::Sum, node.mesh,
        node.axes, StringAttr(), StringAttr(), IntegerAttr());
    inherit(reduce, replaced);
    value.replaceAllUsesExcept(reduce, reduce);
    for (CollectiveOpInterface op : replaced) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op.erase();
    }
    return replaced.size() - 1;
  }

  Uniformity &uniformity;
  llvm::MapVector<Value, Node> nodes;
};

} // namespace

unsigned collectives::mergeReductions(func::FuncOp program,
                                      Uniformity &uniformity) {
  return Merging(uniformity).run(program);
}
