//===- LinalgRule.cpp - Sharding rules of structured ops ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LinalgRule.h"
#include "RuleModels.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::tp;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

std::optional<Reduction> tp::matchLinalgReduction(linalg::LinalgOp op,
                                                  unsigned init) {
  SmallVector<BlockArgument> outputs(op.getRegionOutputArgs());
  SmallVector<Operation *, 2> combiners;
  Value folded = matchReduction(outputs, init, combiners);
  if (!folded || combiners.size() != 1)
    return std::nullopt;
  Operation *combiner = combiners.front();
  std::optional<ReductionKind> kind = getReductionKind(combiner);
  if (!kind)
    return std::nullopt;
  return Reduction{combiner, folded, *kind};
}

bool tp::isNeutral(Value value, ReductionKind kind) {
  // Redistributions don't change a value.
  while (auto redistribute = value.getDefiningOp<RedistributeOp>())
    value = redistribute.getInput();
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.value();
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return false;
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    if (!dense.isSplat())
      return false;
    attr = dense.getSplatValue<Attribute>();
  }
  bool isProduct = kind == ReductionKind::Product;
  if (auto number = dyn_cast<FloatAttr>(attr))
    return isProduct ? number.getValue().isExactlyValue(1.0)
                     : number.getValue().isZero();
  if (auto number = dyn_cast<IntegerAttr>(attr))
    return number.getValue() == (isProduct ? 1 : 0);
  return false;
}

//===----------------------------------------------------------------------===//
// Linearity
//===----------------------------------------------------------------------===//

namespace {

/// A set of the op's operands, by number.
using OperandSet = llvm::SmallBitVector;

/// How a value in a body depends on the op's operands.
struct Dependence {
  /// The operands that it depends on.
  OperandSet all;
  /// The sets that it is jointly linear in, if the other operands that it
  /// depends on are constant.
  SmallVector<OperandSet, 2> linear;

  /// Whether it is linear in the operands of `set` that it depends on.
  bool isLinearIn(const OperandSet &set) const {
    OperandSet own = set;
    own &= all;
    return llvm::is_contained(linear, own);
  }
};

/// Follows Partial values through a body by the rules of its ops, as
/// propagation does through a program: a product is linear in each factor, a
/// sum in both terms together.
class BodyLinearity {
public:
  explicit BodyLinearity(linalg::LinalgOp op)
      : numOperands(op->getNumOperands()) {
    for (OpOperand &operand : op->getOpOperands()) {
      // A scalar is the same on every rank: a constant.
      if (!isa<ShapedType>(operand.get().getType()))
        continue;
      OperandSet self(numOperands);
      self.set(operand.getOperandNumber());
      dependences[op.getMatchingBlockArgument(&operand)] = {self, {self}};
    }
    for (Operation &inner : op.getBlock()->without_terminator())
      visit(&inner);
  }

  Dependence get(Value value) const {
    auto it = dependences.find(value);
    // A value from outside the op is a constant.
    return it == dependences.end() ? Dependence{OperandSet(numOperands), {}}
                                   : it->second;
  }

private:
  /// The most sets to keep per value; only a sum of many products has more.
  static constexpr size_t kMaxSets = 16;

  void visit(Operation *op) {
    Dependence result{OperandSet(numOperands), {}};
    SmallVector<Dependence, 3> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(get(operand));
      result.all |= operands.back().all;
    }
    // A nested body may read anything.
    if (op->getNumRegions())
      result.all.set();
    if (auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op)) {
      ShardingRule rule = ruleOp.getShardingRule();
      for (const LinearSet &set :
           ArrayRef(rule.linearSets).drop_back(rule.numOnce))
        for (OperandSet &candidate : getUnions(operands, set))
          if (isLinear(operands, set, candidate) &&
              !llvm::is_contained(result.linear, candidate) &&
              result.linear.size() < kMaxSets)
            result.linear.push_back(candidate);
    }
    for (Value value : op->getResults())
      dependences[value] = result;
  }

  /// The unions of one linear set of each operand in `set`.
  SmallVector<OperandSet> getUnions(ArrayRef<Dependence> operands,
                                    const LinearSet &set) {
    SmallVector<OperandSet> unions = {OperandSet(numOperands)};
    for (unsigned index : set) {
      SmallVector<OperandSet> next;
      for (const OperandSet &before : unions)
        for (const OperandSet &own : operands[index].linear)
          if (next.size() < kMaxSets)
            (next.emplace_back(before)) |= own;
      unions = std::move(next);
    }
    return unions;
  }

  static bool isLinear(ArrayRef<Dependence> operands, const LinearSet &set,
                       const OperandSet &candidate) {
    for (auto [index, operand] : llvm::enumerate(operands))
      if (llvm::is_contained(set, index) ? !operand.isLinearIn(candidate)
                                         : operand.all.anyCommon(candidate))
        return false;
    return true;
  }

  unsigned numOperands;
  DenseMap<Value, Dependence> dependences;
};

/// Adds the sets of operands in which the op is linear.
void addLinearSets(linalg::LinalgOp op, ShardingRule &rule) {
  BodyLinearity body(op);
  SmallVector<Dependence, 1> results;
  OperandSet inits(op->getNumOperands());
  for (OpOperand &init : op.getDpsInitsMutable()) {
    unsigned index = init.getOperandNumber() - op.getNumDpsInputs();
    Value value = op.getBlock()->getTerminator()->getOperand(index);
    if (op.getNumReductionLoops()) {
      // An iteration sees the accumulator instead of the initial value.
      auto reduction = matchLinalgReduction(op, index);
      if (!reduction || reduction->kind != ReductionKind::Sum)
        return;
      value = reduction->folded;
      if (!isNeutral(init.get(), ReductionKind::Sum))
        inits.set(init.getOperandNumber());
    }
    if (getElementTypeOrSelf(init.get().getType()).isInteger(1))
      return;
    results.push_back(body.get(value));
  }
  SmallVector<LinearSet> free, once;
  auto toSet = [](const OperandSet &bits) {
    return LinearSet(bits.set_bits_begin(), bits.set_bits_end());
  };
  for (const Dependence &result : results)
    for (OperandSet set : result.linear) {
      bool isLinear = llvm::all_of(results, [&](const Dependence &other) {
        return other.isLinearIn(set);
      });
      if (!isLinear || llvm::is_contained(free, toSet(set)) ||
          llvm::is_contained(once, toSet(set)))
        continue;
      if (inits.none()) {
        free.push_back(toSet(set));
        continue;
      }
      // Initial values are terms of the sum: they are Partial too, or count on
      // one rank.
      once.push_back(toSet(set));
      free.push_back(toSet(set |= inits));
    }
  rule.linear(free).linearOnce(once);
}

} // namespace

//===----------------------------------------------------------------------===//
// Rule
//===----------------------------------------------------------------------===//

/// The kind of the reduction loops of `op`, if it is the same for all results.
static std::optional<ReductionKind> getKind(linalg::LinalgOp op) {
  std::optional<ReductionKind> kind;
  for (unsigned init = 0; init < op.getNumDpsInits(); ++init) {
    auto reduction = matchLinalgReduction(op, init);
    if (!reduction || (kind && *kind != reduction->kind))
      return std::nullopt;
    kind = reduction->kind;
  }
  return kind;
}

ShardingRule tp::getLinalgRule(linalg::LinalgOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (!op.hasPureTensorSemantics() ||
      llvm::any_of(ranges, ShapedType::isDynamic))
    return ShardingRule::replicated(op);

  ShardingRule rule;
  std::optional<ReductionKind> kind = getKind(op);
  SmallVector<bool> isParallel = llvm::map_to_vector(
      op.getIteratorTypesArray(), [](utils::IteratorType iterator) {
        return iterator == utils::IteratorType::parallel;
      });
  for (auto [size, parallel] : llvm::zip(ranges, isParallel)) {
    Factor &factor = rule.factors.emplace_back(Factor{size});
    if (parallel)
      continue;
    factor.kind = kind ? FactorKind::Reduction : FactorKind::Whole;
    factor.reduction = kind.value_or(ReductionKind::Sum);
  }
  auto setWhole = [&](unsigned loop) {
    rule.factors[loop].kind = FactorKind::Whole;
  };

  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    bool isInit = op.isDpsInit(&operand);
    TensorFactors dims;
    llvm::SmallBitVector seen(ranges.size());
    for (AffineExpr expr : map.getResults()) {
      DimFactors &factors = dims.emplace_back();
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        unsigned loop = dim.getPosition();
        factors.push_back(loop);
        // The loop indexes a diagonal, or a reduction runs along the result.
        if (seen.test(loop) || (isInit && !isParallel[loop]))
          setWhole(loop);
        seen.set(loop);
        continue;
      }
      // A window moves over the others' blocks.
      for (unsigned loop = 0; loop < ranges.size(); ++loop)
        if (expr.isFunctionOfDim(loop))
          setWhole(loop);
    }
    // Several iterations write one element.
    for (unsigned loop = 0; isInit && loop < ranges.size(); ++loop)
      if (!seen.test(loop) && isParallel[loop])
        setWhole(loop);
    rule.operands.push_back(dims);
    if (isInit)
      rule.results.push_back(dims);
  }
  addLinearSets(op, rule);
  return rule;
}
