//===- Propagate.cpp - Give every value a placement -----------------------===//
//
// What the plan (or the IR) fixes flows through the sharding rules. A backward
// sweep first collects what later redistributions want of a value; the forward
// sweep then decides each op, with the placements of its operands known: over
// each mesh dimension it takes the split of least communication, counting what
// its operands need and what the wish for its result would cost. A placement
// that no operand has and nobody wishes for is never invented.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "tp/Analysis/Redistribution.h"
#include "tp/Analysis/SplitInference.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PROPAGATE
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

double getNumBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return static_cast<double>(tensor.getNumElements()) *
         llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

/// How much dearer it is to move a value whose placement is fixed at its source
/// than any other: it would move again on every run.
constexpr double kPinnedFactor = 1e6;

/// Whether `value` comes from an op without operands that has a placement.
bool isPinned(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands())
    return false;
  auto sharding = op->getAttrOfType<ShardingAttr>(kShardingAttr);
  return sharding && !sharding.isReplicated();
}

class FunctionPropagator {
public:
  FunctionPropagator(func::FuncOp function, MeshOp mesh)
      : function(function), mesh(mesh),
        meshRef(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {}

  LogicalResult run();

private:
  /// What a later redistribution wants of a value, and which one that is.
  struct Wish {
    ShardingAttr sharding;
    RedistributeOp origin;
    /// The mesh dimensions that it is about; null for all.
    AxisListAttr over;

    bool isAbout(StringRef axis) const {
      return !over || llvm::any_of(over, [&](AxisRefAttr other) {
        return other.getName() == axis;
      });
    }
    /// Whether `given` is what is wished for.
    bool isGranted(ShardingAttr given, MeshOp mesh) const;
  };
  void collectWishes(Block &block);

  LogicalResult visit(Operation *op);
  LogicalResult visitLocalView(Operation *op);
  LogicalResult visitRuleOp(ShardingRuleOpInterface op);
  SmallVector<AxisRefAttr> collectAxes(Operation *op);
  OpSplit chooseSplit(ShardingRuleOpInterface op, const ShardingRule &rule);
  std::optional<RedistributionCost> getCost(Operation *op,
                                            const ShardingRule &rule,
                                            const OpSplit &split,
                                            AxisRefAttr axis);

  /// `value` placed as `sharding`, for `user`; a redistribution is shared by
  /// all users that need the same.
  Value getPlaced(Value value, ShardingAttr sharding, Operation *user,
                  StringRef fqn, const Twine &reason);
  ShardingAttr getReplicated(Type type) {
    return ShardingAttr::getReplicated(meshRef,
                                       cast<RankedTensorType>(type).getRank());
  }

  func::FuncOp function;
  MeshOp mesh;
  FlatSymbolRefAttr meshRef;
  DenseMap<Value, ShardingAttr> shardings;
  DenseMap<Value, Wish> wishes;
  DenseMap<std::pair<Value, ShardingAttr>, Value> placed;
  /// Where parameters live, by FQN.
  DenseMap<StringAttr, ShardingAttr> parameters;
  /// Values between tp.to_local and tp.from_local, each rank's own.
  DenseSet<Value> locals;
};

} // namespace

//===----------------------------------------------------------------------===//
// Backward: wishes
//===----------------------------------------------------------------------===//

/// A wish for a result becomes one for the operands, along parallel factors. Of
/// several users the earliest has the say: the sweep runs backward, and the
/// last word stays.
void FunctionPropagator::collectWishes(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    if (isa<func::ReturnOp>(op)) {
      for (OpOperand &operand : op.getOpOperands())
        if (ShardingAttr wanted =
                tp::getResultSharding(function, operand.getOperandNumber()))
          wishes[operand.get()] = {wanted, RedistributeOp()};
      continue;
    }
    if (auto redistribute = dyn_cast<RedistributeOp>(op)) {
      wishes[redistribute.getInput()] = {
          redistribute.getSharding(), redistribute, redistribute.getOverAttr()};
      continue;
    }
    auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruleOp || op.getNumResults() != 1)
      continue;
    auto [wanted, origin, over] = wishes.lookup(op.getResult(0));
    if (!wanted)
      continue;
    ShardingRule rule = ruleOp.getShardingRule();
    OpSplit split = getReplicatedSplit(rule, mesh);
    for (auto [dim, axes] : llvm::enumerate(wanted.getDims()))
      for (AxisRefAttr axis : axes)
        for (unsigned factor : rule.results[0][dim])
          if (canSplit(rule, split, factor, axis)) {
            split.factorAxes[factor].push_back(axis);
            break;
          }
    // A wish that the op can't grant, as for a minor factor of a merged
    // dimension, is none of its operands' business.
    ShardingAttr given = getResultSharding(rule, split, 0);
    bool grants =
        given && llvm::all_of(llvm::zip(given.getDims(), wanted.getDims()),
                              [](auto pair) {
                                auto [have, want] = pair;
                                return have.empty() || have == want;
                              });
    if (split.isReplicated() || !grants)
      continue;
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      if (ShardingAttr sharding = getOperandSharding(rule, split, i))
        if (!sharding.isReplicated())
          wishes[op.getOperand(i)] = {sharding, origin, over};
  }
}

bool FunctionPropagator::Wish::isGranted(ShardingAttr given,
                                         MeshOp mesh) const {
  if (!origin || !given)
    return false;
  for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
    StringRef axis = mesh.getAxisName(i);
    if (isAbout(axis) &&
        (given.getShardedDim(axis) != sharding.getShardedDim(axis) ||
         given.getPartialKind(axis) != sharding.getPartialKind(axis)))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Forward: decisions
//===----------------------------------------------------------------------===//

std::optional<RedistributionCost>
FunctionPropagator::getCost(Operation *op, const ShardingRule &rule,
                            const OpSplit &split, AxisRefAttr axis) {
  RedistributionCost cost;
  double pending = 0, growth = 0;
  int64_t size = mesh.getAxisSize(axis);
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    ShardingAttr needed = getOperandSharding(rule, split, index);
    if (!needed)
      return std::nullopt;
    auto own = getAxisCost(shardings.at(operand), needed, axis, size,
                           getNumBytes(operand.getType()));
    if (!own)
      return std::nullopt;
    // A parameter stays as the plan places it, wherever anything else can move.
    if (isPinned(operand))
      own->bytes *= kPinnedFactor;
    cost += *own;
    if (needed.getPartialKind(axis))
      pending += getNumBytes(operand.getType());
  }
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    ShardingAttr given = getResultSharding(rule, split, index);
    if (!given)
      return std::nullopt;
    if (pending > 0)
      growth += getNumBytes(result.getType());
    Wish wish = wishes.lookup(result);
    if (ShardingAttr wanted = wish.sharding;
        wanted && wish.isAbout(axis.getName()))
      if (auto own = getAxisCost(given, wanted, axis, size,
                                 getNumBytes(result.getType())))
        cost += *own;
  }
  // A Partial that passes through is reduced later: what that grows by counts.
  if (growth > pending)
    cost.bytes += 2 * (growth - pending) * (size - 1) / size;
  return cost;
}

/// The axes that a choice is to be made for: those of the operands' placements
/// and of the wishes for the results, as they nest there. Of two that overlap,
/// the first counts.
SmallVector<AxisRefAttr> FunctionPropagator::collectAxes(Operation *op) {
  SmallVector<AxisRefAttr> axes;
  auto add = [&](AxisRefAttr axis) {
    bool overlaps = llvm::any_of(
        axes, [&](AxisRefAttr other) { return axis.overlaps(other); });
    if (!overlaps && mesh.getAxisSize(axis) > 1)
      axes.push_back(axis);
  };
  auto addAll = [&](ShardingAttr sharding) {
    for (AxisListAttr list : sharding.getDims())
      llvm::for_each(list, add);
    for (PartialAttr partial : sharding.getPartial())
      add(partial.getAxis());
  };
  for (Value operand : op->getOperands())
    addAll(shardings.at(operand));
  for (Value result : op->getResults()) {
    Wish wish = wishes.lookup(result);
    if (!wish.sharding)
      continue;
    for (AxisListAttr list : wish.sharding.getDims())
      for (AxisRefAttr axis : list)
        if (wish.isAbout(axis.getName()))
          add(axis);
  }
  return axes;
}

/// The segments in which `axis` may split `factor`: those of all operands
/// together, of one of them, or of what is wished for.
static SmallVector<SmallVector<int64_t>>
getSegmentChoices(const ShardingRule &rule, const OpSplit &chosen,
                  unsigned factor, AxisRefAttr axis,
                  ArrayRef<ShardingAttr> operands,
                  ArrayRef<ShardingAttr> wanted) {
  if (!chosen.factorAxes[factor].empty())
    return {chosen.factorSegments[factor]};
  SmallVector<SmallVector<int64_t>> choices;
  auto add = [&](ArrayRef<ShardingAttr> from, ArrayRef<ShardingAttr> to) {
    SmallVector<int64_t> segments = inferSegments(rule, factor, axis, from, to);
    if (!llvm::is_contained(choices, segments))
      choices.push_back(std::move(segments));
  };
  add(operands, {});
  for (size_t i = 0; i < operands.size(); ++i) {
    SmallVector<ShardingAttr> alone(operands.size());
    alone[i] = operands[i];
    add(alone, {});
  }
  add({}, wanted);
  return choices;
}

/// Whether an operand that `axis` splits as one would have to be split by it in
/// segments: what is to follow rarely wants these.
static bool cutsIntoSegments(const ShardingRule &rule, const OpSplit &split,
                             AxisRefAttr axis,
                             ArrayRef<ShardingAttr> operands) {
  for (auto [index, have] : llvm::enumerate(operands)) {
    ShardingAttr needed = getOperandSharding(rule, split, index);
    auto dim = have.getShardedDim(axis);
    if (needed && dim && needed.getShardedDim(axis) == dim &&
        have.getDims()[*dim].getSegments().empty() &&
        !needed.getDims()[*dim].getSegments().empty())
      return true;
  }
  return false;
}

OpSplit FunctionPropagator::chooseSplit(ShardingRuleOpInterface op,
                                        const ShardingRule &rule) {
  OpSplit chosen = getReplicatedSplit(rule, mesh);
  auto operands = llvm::map_to_vector(
      op->getOperands(), [&](Value operand) { return shardings.at(operand); });
  for (AxisRefAttr axis : collectAxes(op)) {
    auto wanted = llvm::map_to_vector(op->getResults(), [&](Value result) {
      Wish wish = wishes.lookup(result);
      return wish.sharding && wish.isAbout(axis.getName()) ? wish.sharding
                                                           : ShardingAttr();
    });
    // Factors that an operand is split along already, or that are wished for.
    llvm::SmallSetVector<unsigned, 4> factors;
    auto addFactors = [&](ShardingAttr sharding, const TensorFactors &tensor) {
      if (!sharding)
        return;
      if (auto dim = sharding.getShardedDim(axis))
        factors.insert(tensor[*dim].begin(), tensor[*dim].end());
    };
    for (auto [sharding, tensor] : llvm::zip(operands, rule.operands))
      addFactors(sharding, tensor);
    for (auto [sharding, tensor] : llvm::zip(wanted, rule.results))
      addFactors(sharding, tensor);

    // Linear sets first, then factors, then replicated: of equal cost, the one
    // that leaves the least to compute wins. Those that take work come last,
    // and only where a Partial is wished for.
    SmallVector<OpSplit> candidates;
    auto addLinear = [&](unsigned begin, unsigned end) {
      for (unsigned set = begin; set < end; ++set) {
        candidates.push_back(chosen);
        candidates.back().linearAxes.push_back({set, axis});
      }
    };
    unsigned numFree = rule.linearSets.size() - rule.numOnce;
    addLinear(0, numFree);
    for (unsigned factor : factors) {
      for (ArrayRef<int64_t> segments :
           getSegmentChoices(rule, chosen, factor, axis, operands, wanted)) {
        OpSplit candidate = chosen;
        candidate.factorSegments[factor].assign(segments.begin(),
                                                segments.end());
        if (!canSplit(rule, candidate, factor, axis))
          continue;
        candidate.factorAxes[factor].push_back(axis);
        if (!cutsIntoSegments(rule, candidate, axis, operands))
          candidates.push_back(std::move(candidate));
      }
    }
    candidates.push_back(chosen);
    bool wantsPartial = llvm::any_of(wanted, [&](ShardingAttr sharding) {
      return sharding && sharding.getPartialKind(axis);
    });
    if (wantsPartial)
      addLinear(numFree, rule.linearSets.size());

    std::optional<RedistributionCost> best;
    for (OpSplit &candidate : candidates) {
      auto cost = getCost(op, rule, candidate, axis);
      if (cost && (!best || *cost < *best)) {
        best = cost;
        chosen = std::move(candidate);
      }
    }
  }
  return chosen;
}

Value FunctionPropagator::getPlaced(Value value, ShardingAttr sharding,
                                    Operation *user, StringRef fqn,
                                    const Twine &reason) {
  if (shardings.at(value) == sharding)
    return value;
  Value &result = placed[{value, sharding}];
  if (!result) {
    OpBuilder builder(user);
    result = RedistributeOp::create(builder, user->getLoc(), value.getType(),
                                    value, sharding, builder.getStringAttr(fqn),
                                    builder.getStringAttr(reason));
    shardings[result] = sharding;
  }
  return result;
}

LogicalResult FunctionPropagator::visitRuleOp(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  SmallVector<ShardingAttr> fixed = getResultShardings(op);
  // A parameter that several modules share has one placement.
  auto parameter = dyn_cast<nn::ParameterOp>(op.getOperation());
  ShardingAttr *shared =
      parameter ? &parameters[parameter.getFqnAttr()] : nullptr;
  if (shared && *shared && fixed.empty()) {
    fixed = {*shared};
    setResultShardings(op, fixed);
  }
  if (!fixed.empty() && op->getNumOperands() == 0) {
    if (shared)
      *shared = fixed.front();
    for (auto [result, sharding] : llvm::zip(op->getResults(), fixed))
      shardings[result] = sharding;
    return success();
  }
  OpSplit split = chooseSplit(op, rule);
  // An operand moves on behalf of the redistribution whose wish it fulfils, or
  // because the op can't do without.
  Wish wish =
      op->getNumResults() == 1 ? wishes.lookup(op->getResult(0)) : Wish();
  bool granted = wish.isGranted(tp::getResultSharding(rule, split, 0), mesh);
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    ShardingAttr needed = getOperandSharding(rule, split, index);
    if (granted && wish.origin.getReason())
      operand.set(getPlaced(operand.get(), needed, op, getFqn(wish.origin),
                            *wish.origin.getReason()));
    else
      operand.set(getPlaced(operand.get(), needed, op, getFqn(op),
                            op->getName().getStringRef() + " needs operand " +
                                Twine(index) + " as " +
                                printPlacements(needed, mesh)));
  }
  SmallVector<ShardingAttr> results;
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    results.push_back(tp::getResultSharding(rule, split, i));
    shardings[op->getResult(i)] = results.back();
  }
  if (fixed.empty()) {
    if (shared)
      *shared = results.front();
    setResultShardings(op, results);
    return success();
  }
  // The IR fixes the results: what the rule gives is redistributed to it.
  setResultShardings(op, results);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  for (auto [result, sharding] : llvm::zip(op->getResults(), fixed)) {
    if (shardings[result] == sharding)
      continue;
    auto redistribute = RedistributeOp::create(
        builder, op->getLoc(), result.getType(), result, sharding,
        builder.getStringAttr(getFqn(op)),
        builder.getStringAttr("tp.sharding on " +
                              op->getName().getStringRef()));
    result.replaceAllUsesExcept(redistribute, redistribute);
    shardings[redistribute] = sharding;
  }
  return success();
}

/// tp.distribute becomes a redistribution; what is between tp.to_local and
/// tp.from_local stays as it is.
LogicalResult FunctionPropagator::visitLocalView(Operation *op) {
  if (auto distribute = dyn_cast<DistributeOp>(op)) {
    ShardingAttr from = shardings.at(distribute.getInput());
    if (!from.isReplicated())
      return op->emitError()
             << "the input is placed already, " << printPlacements(from, mesh)
             << "; tp.redistribute changes a placement";
    distribute.replaceAllUsesWith(getPlaced(distribute.getInput(),
                                            distribute.getSharding(), op,
                                            getFqn(op), "tp.distribute"));
    op->erase();
    return success();
  }
  if (auto toLocal = dyn_cast<ToLocalOp>(op)) {
    ShardingAttr from = shardings.at(toLocal.getInput());
    if (locals.contains(toLocal.getInput()))
      return op->emitError("the input is a local value already");
    if (failed(verifyRedistribution(from, toLocal.getSharding(), mesh,
                                    [&]() { return op->emitError(); })))
      return failure();
    toLocal.getInputMutable().set(getPlaced(
        toLocal.getInput(), toLocal.getSharding(), op, getFqn(op),
        "tp.to_local as " + printPlacements(toLocal.getSharding(), mesh)));
    shardings[toLocal] = getReplicated(toLocal.getType());
    locals.insert(toLocal);
    return success();
  }
  if (auto fromLocal = dyn_cast<FromLocalOp>(op)) {
    if (!locals.contains(fromLocal.getInput()))
      return op->emitError("the input isn't a local value; tp.to_local makes "
                           "one of a global value");
    shardings[fromLocal] = fromLocal.getSharding();
    return success();
  }
  // Any other op: on local values and on what all ranks have alike.
  for (Value operand : op->getOperands())
    if (!locals.contains(operand) && !shardings.at(operand).isReplicated())
      return op->emitError()
             << "mixes a local value with one that is placed "
             << printPlacements(shardings.at(operand), mesh)
             << "; tp.to_local or tp.from_local must bring them together";
  if (!isa<ShardingRuleOpInterface>(op))
    return op->emitError("can't take a local value; tp.from_local makes a "
                         "global one of it");
  SmallVector<ShardingAttr> results;
  for (Value result : op->getResults()) {
    results.push_back(getReplicated(result.getType()));
    shardings[result] = results.back();
    locals.insert(result);
  }
  setResultShardings(op, results);
  return success();
}

LogicalResult FunctionPropagator::visit(Operation *op) {
  if (isa<DistributeOp, ToLocalOp, FromLocalOp>(op) ||
      llvm::any_of(op->getOperands(),
                   [&](Value operand) { return locals.contains(operand); }))
    return visitLocalView(op);
  if (auto redistribute = dyn_cast<RedistributeOp>(op)) {
    Value input = redistribute.getInput();
    ShardingAttr from = shardings.at(input), to = redistribute.getTarget(from);
    redistribute.setShardingAttr(to);
    redistribute.removeOverAttr();
    if (from == to) {
      redistribute.replaceAllUsesWith(input);
      redistribute.erase();
      return success();
    }
    if (failed(verifyRedistribution(
            from, to, mesh, [&]() { return redistribute.emitError(); })))
      return failure();
    shardings[redistribute] = to;
    return success();
  }
  if (auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op))
    return visitRuleOp(ruleOp);
  if (auto returnOp = dyn_cast<func::ReturnOp>(op)) {
    for (OpOperand &operand : returnOp->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      ShardingAttr wanted = tp::getResultSharding(function, index);
      if (!wanted) {
        wanted = getReplicated(operand.get().getType());
        function.setResultAttr(index, kShardingAttr, wanted);
      }
      ShardingAttr from = shardings.at(operand.get());
      if (failed(verifyRedistribution(from, wanted, mesh,
                                      [&]() { return op->emitError(); })))
        return failure();
      operand.set(getPlaced(operand.get(), wanted, op, getFqn(op),
                            "result " + Twine(index) + " of the function is " +
                                printPlacements(wanted, mesh)));
    }
    return success();
  }
  return op->emitError() << "'" << op->getName()
                         << "' has no sharding rule; it needs "
                            "ShardingRuleOpInterface to be parallelised";
}

LogicalResult FunctionPropagator::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError(
        "only functions of one block can be parallelised");
  Block &block = function.getBody().front();
  for (BlockArgument argument : block.getArguments()) {
    if (!isa<RankedTensorType>(argument.getType()))
      return function.emitError() << "argument " << argument.getArgNumber()
                                  << " is not a ranked tensor";
    unsigned index = argument.getArgNumber();
    if (function.getArgAttr(index, kGlobalTypeAttr))
      return function.emitError("is partitioned already");
    ShardingAttr sharding = getArgSharding(function, index);
    if (!sharding) {
      sharding = getReplicated(argument.getType());
      if (failed(verifySharding(sharding, argument.getType(), function, [&]() {
            return function.emitError() << "argument " << index << ": ";
          })))
        return failure();
      function.setArgAttr(index, kShardingAttr, sharding);
    }
    shardings[argument] = sharding;
  }
  for (Operation &op : block) {
    if (isa<RedistributeOp, DistributeOp, ToLocalOp, FromLocalOp,
            ShardingRuleOpInterface, func::ReturnOp>(op))
      continue;
    return visit(&op);
  }
  collectWishes(block);
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(visit(&op)))
      return failure();
  return success();
}

namespace {
struct Propagate : tp::impl::PropagateBase<Propagate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<MeshOp> mesh = getMesh(module);
    if (failed(mesh))
      return signalPassFailure();
    if (!*mesh) {
      module.emitError("no tp.mesh to propagate placements over; "
                       "tp-apply-plan makes one from a plan");
      return signalPassFailure();
    }
    inlineModules(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() &&
          failed(FunctionPropagator(function, *mesh).run()))
        return signalPassFailure();
  }
};
} // namespace
