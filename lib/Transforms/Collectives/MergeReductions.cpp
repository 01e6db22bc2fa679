//===- MergeReductions.cpp - Sums reduced once, where they are smallest ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A linear op commutes with sums, so the reduction of its operands may move to
// its result. If the op has several reduced operands, one reduction then
// replaces several. For example, if three projections use a value, its three
// gradients are added first and their sum is reduced. The sharding rule of an
// op says in which sets of operands it is linear; the other operands must be
// the same on all ranks of the group.
//
// A term that is added to a reduced value and needs no reduction itself, such
// as a residual or a bias, is kept apart: each value is the reduction of its
// partial part plus its whole part, which needs no reduction. So all of
//
//   (x + R(a)) + R(b)    (R(a) + p) + (x + (R(b) + q))    x - R(a) / 2 - R(b)
//
// have one reduction, of a + b or of -a / 2 - b.
//
// Ops whose summed operands have no other use form trees. The leaves are
// reductions: all_reduces over one group, or reduce_scatters over one group
// along the same dimension. A value in such a tree is either reduced itself or
// computed from reduced values. From the leaves on, the pass chooses what moves
// fewer bytes or, at equal bytes, needs fewer collectives. At equal cost the
// ops stay as they are.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "tp/Transforms/Sums.h"
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

/// A value that is the reduction of a partial part, plus a whole part if it has
/// one.
struct Node {
  /// The first of the reductions; all of them are alike.
  CollectiveOpInterface reduction;
  /// What they all mean, except for the dimension: they may scatter another
  /// dimension than this value does.
  DictionaryAttr group;
  /// The dimension of this value that they scatter; -1 for an all_reduce.
  int64_t dim = -1;
  /// The operands that have nodes; none for a reduction.
  SmallVector<unsigned, 2> summed;
  /// The other operands in which the op is jointly linear.
  SmallVector<unsigned, 2> added;
  /// The types of the partial part, before it is reduced, and of the whole
  /// part; null if there is no such part.
  RankedTensorType partial, whole;
  /// Whether the op is a sum of its operands, up to their signs.
  bool isSum = false;
  /// The sum in the tree that adds the whole part: the addition nearest to the
  /// root or, if there is none, the difference nearest to it.
  Operation *total = nullptr;
  Cost reducedAbove, best;
  bool isRoot = true;

  bool isReducedHere() const { return summed.empty() || best < reducedAbove; }
};

class Merging {
public:
  Merging(Uniformity &uniformity, func::FuncOp program)
      : uniformity(uniformity), program(program),
        tensors(TensorBuilder::get(program)) {}

  unsigned run() {
    program.walk([&](Operation *op) { visit(op); });
    unsigned numSaved = 0;
    for (auto &[value, node] : nodes)
      if (node.isRoot)
        numSaved += realize(value);
    return numSaved;
  }

private:
  static Cost getCost(const Node &node) {
    return {getTensorBytes(node.partial), 1};
  }

  void visit(Operation *op) {
    if (isa<AllReduceOp, ReduceScatterOp>(op))
      return addReduction(cast<CollectiveOpInterface>(op));
    if (llvm::none_of(op->getOperands(),
                      [&](Value v) { return getNode(v, op); }))
      return;
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op->getNumResults() != 1 || op->getNumRegions() ||
        !isMemoryEffectFree(op) ||
        !isa<RankedTensorType>(op->getResult(0).getType()))
      return;
    ShardingRule rule = ruled.getShardingRule();
    for (const LinearSet &set :
         ArrayRef(rule.linearSets).drop_back(rule.numOnce))
      if (addNode(op, rule, set))
        return;
  }

  void addReduction(CollectiveOpInterface op) {
    if (isa<StartOp>(op->getParentOp()))
      return;
    Node node;
    node.reduction = op;
    NamedAttrList group(getMeaning(op));
    group.erase("dim");
    node.group = group.getDictionary(op->getContext());
    if (auto scatter = dyn_cast<ReduceScatterOp>(*op)) {
      if (scatter.getKind() != ReductionKind::Sum)
        return;
      node.dim = scatter.getDim();
    } else if (cast<AllReduceOp>(*op).getKind() != ReductionKind::Sum) {
      return;
    }
    node.partial = cast<RankedTensorType>(op->getOperand(0).getType());
    node.reducedAbove = node.best = getCost(node);
    nodes[op->getResult(0)] = std::move(node);
  }

  /// The node of `value`, an operand of `op`; null if there is none or
  /// something else uses it.
  Node *getNode(Value value, Operation *op) {
    if (!value.hasOneUse())
      return nullptr;
    auto it = nodes.find(value);
    if (it == nodes.end() || value.getParentBlock() != op->getBlock())
      return nullptr;
    return &it->second;
  }

  /// Whether one reduction of the sum can replace the reductions of both.
  static bool areAlike(const Node &a, const Node &b) {
    return a.dim == b.dim && a.group == b.group &&
           a.reduction->getName() == b.reduction->getName();
  }

  /// Adds a node for `op` if it is linear in the operands of `set`, some of
  /// which have nodes; the others are whole.
  bool addNode(Operation *op, const ShardingRule &rule, const LinearSet &set) {
    Node node;
    const Node *first = nullptr;
    for (unsigned i : set) {
      if (i >= op->getNumOperands())
        return false;
      Node *summand = getNode(op->getOperand(i), op);
      if (!summand) {
        node.added.push_back(i);
        continue;
      }
      first = first ? first : summand;
      if (!areAlike(*summand, *first))
        return false;
      node.summed.push_back(i);
      node.reducedAbove = node.reducedAbove + summand->best;
    }
    if (!first)
      return false;
    auto once = ArrayRef(rule.linearSets).take_back(rule.numOnce);
    if (!node.added.empty() &&
        !llvm::is_contained(once, LinearSet(node.summed)))
      return false;
    node.reduction = first->reduction;
    node.group = first->group;
    ArrayRef<AxisRefAttr> axes = node.reduction.getAxes().getAxes();
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (!llvm::is_contained(set, i) && !uniformity.isUniform(operand, axes))
        return false;
    node.isSum = !once.empty();
    if (first->dim >= 0 && !addScattered(op, rule, *first, node))
      return false;
    if (!addTypes(op, rule, *first, node) || !addTotal(op, node))
      return false;
    node.best = std::min(node.reducedAbove, getCost(node));
    for (unsigned i : node.summed)
      nodes[op->getOperand(i)].isRoot = false;
    nodes[op->getResult(0)] = std::move(node);
    return true;
  }

  /// Whether the op is elementwise or only moves elements. Such an op may also
  /// run on more elements, or twice.
  static bool isPointwise(const ShardingRule &rule) {
    return rule.windows.empty() &&
           llvm::all_of(rule.factors, [](const Factor &factor) {
             return factor.kind == FactorKind::Parallel;
           });
  }

  /// Finds the result's dimension for the operands' scattered one. False unless
  /// the op can run before the scatter: the dimension's factor must be alone in
  /// it, and no operand outside the sum may have that factor.
  bool addScattered(Operation *op, const ShardingRule &rule, const Node &first,
                    Node &node) {
    if (!isPointwise(rule))
      return false;
    unsigned index = node.summed.front();
    const DimFactors &factors = rule.operands[index][first.dim];
    if (factors.empty()) {
      node.dim = getUnitDim(op, rule, index, first.dim);
      return node.dim >= 0;
    }
    if (factors.size() != 1)
      return false;
    for (auto [i, operand] : llvm::enumerate(rule.operands)) {
      if (llvm::is_contained(node.added, i))
        continue;
      std::optional<int64_t> dim = getWholeDim(operand, factors.front());
      if (dim != (llvm::is_contained(node.summed, i) ? first.dim : -1))
        return false;
    }
    std::optional<int64_t> dim = getWholeDim(rule.results[0], factors.front());
    if (!dim || *dim < 0)
      return false;
    node.dim = *dim;
    return true;
  }

  /// The result's dimension for `dim`, which has one element on each rank and
  /// therefore no factor in a reshape: a dimension of one element behind as
  /// many elements as `dim`. -1 if there is none.
  static int64_t getUnitDim(Operation *op, const ShardingRule &rule,
                            unsigned index, int64_t dim) {
    auto getBefore = [](Value value, int64_t dim) {
      ArrayRef<int64_t> shape =
          cast<RankedTensorType>(value.getType()).getShape();
      return ShapedType::getNumElements(shape.take_front(dim));
    };
    Value result = op->getResult(0);
    for (auto [other, factors] : llvm::enumerate(rule.results[0]))
      if (factors.empty() &&
          getBefore(result, other) == getBefore(op->getOperand(index), dim))
        return other;
    return -1;
  }

  bool addTypes(Operation *op, const ShardingRule &rule, const Node &first,
                Node &node) {
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    bool hasWhole = !node.added.empty();
    for (unsigned i : node.summed)
      hasWhole |= nodes[op->getOperand(i)].whole != nullptr;
    // The op runs twice: for the partial and for the whole part.
    if (hasWhole && !node.isSum && !isPointwise(rule))
      return false;
    if (!node.isSum) {
      node.partial = result;
      if (node.dim >= 0)
        node.partial =
            resize(result, node.dim, first.partial.getDimSize(first.dim));
      node.whole = hasWhole ? result : RankedTensorType();
      return true;
    }
    for (unsigned i : node.summed) {
      const Node &summand = nodes[op->getOperand(i)];
      if (node.dim >= 0 && op->getOperand(i).getType() != result)
        return false;
      node.partial = getSumType(node.partial, summand.partial);
      node.whole = getSumType(node.whole, summand.whole);
    }
    for (unsigned i : node.added)
      node.whole = getSumType(
          node.whole, cast<RankedTensorType>(op->getOperand(i).getType()));
    return true;
  }

  /// Finds the sum that adds the whole part; false if it is needed and there is
  /// none.
  bool addTotal(Operation *op, Node &node) {
    Type element = getElementTypeOrSelf(op->getResult(0));
    if (node.isSum)
      node.total = op;
    for (unsigned i : node.summed) {
      if (node.total && node.total->hasTrait<OpTrait::IsCommutative>())
        break;
      Operation *below = nodes[op->getOperand(i)].total;
      if (below && canTotal(below, element) &&
          (!node.total || below->hasTrait<OpTrait::IsCommutative>()))
        node.total = below;
    }
    return node.total || !node.whole;
  }

  /// Moves the reductions for `value` to where they cost least.
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
        for (unsigned i : node.summed)
          worklist.push_back(next.getDefiningOp()->getOperand(i));
    }
    return numSaved;
  }

  /// Removes the reductions that `value` is computed from and reduces `value`
  /// instead.
  unsigned reduceHere(Value value, const Node &node) {
    SmallVector<CollectiveOpInterface> replaced;
    SmallVector<Operation *> tree;
    SmallVector<Value> worklist = {value};
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val().getDefiningOp();
      tree.push_back(op);
      const Node &next = nodes[op->getResult(0)];
      if (next.summed.empty())
        replaced.push_back(cast<CollectiveOpInterface>(op));
      for (unsigned i : llvm::reverse(next.summed))
        worklist.push_back(op->getOperand(i));
    }
    remarkRewrite(replaced.front(), "MergeReductions",
                  (Twine(replaced.size()) + " " +
                   replaced.front().getCollectiveKind() +
                   " become one, after the linear ops that use them")
                      .str());
    Operation *root = value.getDefiningOp();
    OpBuilder builder(root);
    Value partial = buildPartial(builder, value);
    if (node.whole)
      partial = buildAddend(builder, tensors, node.total, partial);
    Value result = reduce(builder, replaced, node, partial);
    if (node.whole) {
      Value whole = buildWhole(builder, value);
      result = buildTotal(builder, tensors, node.total, whole, result,
                          cast<RankedTensorType>(value.getType()));
      Operation *sum = result.getDefiningOp();
      sum->setLoc(root->getLoc());
      sum->setDiscardableAttrs(root->getDiscardableAttrDictionary());
    }
    value.replaceAllUsesWith(result);
    for (Operation *op : tree)
      op->erase();
    return replaced.size() - 1;
  }

  /// Builds the reduction of `partial` that replaces others.
  static Value reduce(OpBuilder &builder,
                      ArrayRef<CollectiveOpInterface> replaced,
                      const Node &node, Value partial) {
    CollectiveOpInterface like = node.reduction;
    Location loc = replaced.back()->getLoc();
    if (node.dim < 0)
      return createFor<AllReduceOp>(replaced, builder, loc, partial,
                                    ReductionKind::Sum, like.getMeshAttr(),
                                    like.getAxes());
    auto scatter = cast<ReduceScatterOp>(*like);
    int64_t size = scatter.getType().getDimSize(scatter.getDim());
    return createFor<ReduceScatterOp>(
        replaced, builder, loc, resize(node.partial, node.dim, size), partial,
        ReductionKind::Sum, builder.getI64IntegerAttr(node.dim),
        like.getMeshAttr(), like.getAxes());
  }

  /// Builds the partial part of `value`, before its reduction.
  Value buildPartial(OpBuilder &builder, Value value) {
    const Node &node = nodes[value];
    Operation *op = value.getDefiningOp();
    if (node.summed.empty())
      return op->getOperand(0);
    Values terms(op->getNumOperands());
    for (unsigned i : node.summed)
      terms[i] = buildPartial(builder, op->getOperand(i));
    return build(builder, op, node, terms, node.partial, /*isPartial=*/true);
  }

  /// Builds the whole part of `value`; null if it has none.
  Value buildWhole(OpBuilder &builder, Value value) {
    const Node &node = nodes[value];
    if (!node.whole)
      return {};
    Operation *op = value.getDefiningOp();
    Values terms(op->getNumOperands());
    for (unsigned i : node.summed)
      terms[i] = buildWhole(builder, op->getOperand(i));
    for (unsigned i : node.added)
      terms[i] = op->getOperand(i);
    return build(builder, op, node, terms, node.whole, /*isPartial=*/false);
  }

  using Values = SmallVector<Value, 4>;

  /// Builds `op` on `terms` instead of the operands in its linear set; a null
  /// term is zero.
  Value build(OpBuilder &builder, Operation *op, const Node &node, Values terms,
              RankedTensorType type, bool isPartial) {
    auto set = llvm::to_vector<4>(node.summed);
    llvm::append_range(set, node.added);
    llvm::sort(set);
    auto isZero = [&](unsigned i) { return !terms[i]; };
    if (node.isSum && llvm::count_if(set, isZero) + 1 == int64_t(set.size())) {
      // One term is left: there is nothing to add or subtract.
      unsigned only = *llvm::find_if_not(set, isZero);
      if (only == set.front() || op->hasTrait<OpTrait::IsCommutative>())
        return terms[only];
    }
    if (node.isSum)
      return buildSum(builder, tensors, op, terms[0], terms[1], type);
    Operation *clone = builder.clone(*op);
    for (unsigned i : set) {
      auto own = cast<RankedTensorType>(op->getOperand(i).getType());
      terms[i] = terms[i] ? fill(builder, terms[i], own,
                                 isPartial ? nodes[op->getOperand(i)].dim : -1)
                          : buildZero(builder, tensors, op, own);
      clone->setOperand(i, terms[i]);
    }
    clone->moveBefore(&*builder.getInsertionPoint());
    clone->getResult(0).setType(type);
    return clone->getResult(0);
  }

  /// Broadcasts `value` to the shape of `type`, except along `dim`, which isn't
  /// scattered yet.
  Value fill(OpBuilder &builder, Value value, RankedTensorType type,
             int64_t dim) {
    auto own = cast<RankedTensorType>(value.getType());
    if (dim >= 0)
      type = resize(type, dim, own.getDimSize(dim));
    if (own == type)
      return value;
    return tensors.broadcast(builder, value.getLoc(), value, type);
  }

  Uniformity &uniformity;
  func::FuncOp program;
  const TensorBuilder &tensors;
  llvm::MapVector<Value, Node> nodes;
};

} // namespace

unsigned collectives::mergeReductions(func::FuncOp program,
                                      Uniformity &uniformity) {
  return Merging(uniformity, program).run();
}
