//===- Propagate.cpp - Placements of all values ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the decisions of the propagation
// (tp/Sharding/Propagation/Propagation.h) into the IR: the placement of every
// value, a redistribution where an op needs another placement, and a copy of a
// function for each set of placements that it is called with.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PROPAGATE
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Writes the placements of one function.
class FunctionWriter {
public:
  FunctionWriter(Propagation::Function &function, MeshOp mesh,
                 bool forbidImplicit, RedistributionPlanner &planner)
      : function(function), mesh(mesh), forbidImplicit(forbidImplicit),
        planner(planner) {}

  LogicalResult run();

private:
  LogicalResult visit(Operation *op);
  LogicalResult visitOperands(Operation *op);
  LogicalResult visitLocalView(Operation *op);
  void visitResults(Operation *op);
  void writeShardings(Operation *op, ArrayRef<ShardingAttr> shardings);
  LogicalResult visitRedistribute(RedistributeOp op);
  LogicalResult replaceByPlaced(Operation *op, const Twine &reason);
  LogicalResult visitReturn(Operation *op);

  /// The value of `operand`, placed as its op needs it. All uses that need the
  /// same placement share one redistribution in the block of the value, which
  /// therefore runs as often as the value is computed.
  Value getPlaced(OpOperand &operand, StringRef fqn, const Twine &reason);
  /// Whether the redistribution reduces a Partial value without enlarging its
  /// blocks. Such a redistribution stands where the value is computed, all
  /// others before the first use. So a gathered parameter only lives while it
  /// is used, and an unreduced gradient only until it is reduced.
  bool isReduced(ShardingAttr from, ShardingAttr to);
  /// Emits an error if implicit redistributions are forbidden and nothing in
  /// the plan or the IR asks for that of `operand`.
  void checkImplicit(OpOperand &operand);
  /// The redistribution of the only result of `op` that the plan asks for and
  /// that `op` already fulfils, by taking its operands in other placements.
  RedistributeOp getFulfilled(Operation *op);
  OpBuilder getBuilderAfter(Operation *op) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    return builder;
  }

  Propagation::Function &function;
  MeshOp mesh;
  bool forbidImplicit;
  RedistributionPlanner &planner;
  /// Redistributions that nothing asks for.
  DenseSet<std::pair<Value, ShardingAttr>> implicit;
  DenseMap<std::pair<Value, ShardingAttr>, Value> placed;
  /// Discardable attributes with a placement, by those without.
  DenseMap<std::pair<DictionaryAttr, ShardingAttr>, DictionaryAttr> placedAttrs;
  /// Values between tp.to_local and tp.from_local, each rank's own.
  DenseSet<Value> locals;
};

} // namespace

bool FunctionWriter::isReduced(ShardingAttr from, ShardingAttr to) {
  auto getNumBlocks = [&](ShardingAttr sharding) {
    int64_t count = 1;
    for (AxisListAttr axes : sharding.getDims())
      count *= mesh.getAxesSize(axes.getAxes());
    return count;
  };
  return from.getPartial().size() > to.getPartial().size() &&
         getNumBlocks(from) <= getNumBlocks(to);
}

Value FunctionWriter::getPlaced(OpOperand &operand, StringRef fqn,
                                const Twine &reason) {
  Value value = operand.get();
  auto needed = function.needed.find(&operand);
  if (needed == function.needed.end())
    return value;
  ShardingAttr sharding = needed->second;
  Value &result = placed[{value, sharding}];
  if (!result) {
    Operation *user = operand.getOwner();
    OpBuilder builder(value.getParentBlock()->findAncestorOpInBlock(*user));
    if (isReduced(function.shardings.lookup(value), sharding))
      builder.setInsertionPointAfterValue(value);
    result = RedistributeOp::create(builder, user->getLoc(), value.getType(),
                                    value, sharding, builder.getStringAttr(fqn),
                                    builder.getStringAttr(reason));
    function.shardings[result] = sharding;
  }
  return result;
}

RedistributeOp FunctionWriter::getFulfilled(Operation *op) {
  if (op->getNumResults() != 1 || op->use_empty())
    return {};
  for (Operation *user : op->getUsers()) {
    auto redistribute = dyn_cast<RedistributeOp>(user);
    if (redistribute && redistribute.getReason() &&
        !function.needed.contains(&user->getOpOperand(0)))
      return redistribute;
  }
  return {};
}

void FunctionWriter::checkImplicit(OpOperand &operand) {
  if (!forbidImplicit)
    return;
  ShardingAttr from = function.shardings.lookup(operand.get());
  ShardingAttr to = function.needed.lookup(&operand);
  CommunicationCost cost = planner.getCost(
      from, to, cast<RankedTensorType>(operand.get().getType()));
  // Uses that need the same placement share the redistribution.
  if (cost.bytes == 0 || !implicit.insert({operand.get(), to}).second)
    return;
  operand.getOwner()->emitError()
      << "needs operand " << operand.getOperandNumber() << " as "
      << printPlacements(to, mesh) << ", and it is "
      << printPlacements(from, mesh) << ": " << cost.bytes << " bytes in "
      << cost.collectives << " collective" << (cost.collectives == 1 ? "" : "s")
      << " that nothing asks for; a layout in the plan or a tp.constraint must";
}

LogicalResult FunctionWriter::visitOperands(Operation *op) {
  // The operands of `op`, and those of its body, that must move.
  SmallVector<OpOperand *> moving;
  auto collect = [&](MutableArrayRef<OpOperand> operands) {
    for (OpOperand &operand : operands)
      if (function.needed.contains(&operand))
        moving.push_back(&operand);
  };
  collect(op->getOpOperands());
  if (isa<ShardingRuleOpInterface>(op))
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) { collect(inner->getOpOperands()); });
  if (moving.empty())
    return success();
  RedistributeOp fulfilled = getFulfilled(op);
  for (OpOperand *moved : moving) {
    OpOperand &operand = *moved;
    if (operand.getOwner() != op) {
      checkImplicit(operand);
      operand.set(
          getPlaced(operand, getFqn(op),
                    op->getName().getStringRef() + " reads it in its body"));
      continue;
    }
    // An operand moves for the redistribution that this fulfils, or because the
    // op itself needs it.
    if (fulfilled) {
      operand.set(
          getPlaced(operand, getFqn(fulfilled), *fulfilled.getReason()));
      continue;
    }
    checkImplicit(operand);
    ShardingAttr needed = function.needed.lookup(&operand);
    operand.set(getPlaced(operand, getFqn(op),
                          op->getName().getStringRef() + " needs operand " +
                              Twine(operand.getOperandNumber()) + " as " +
                              printPlacements(needed, mesh)));
  }
  return success();
}

/// Writes the placements of results. If the IR fixes a placement and the op
/// gives another one, a redistribution follows.
void FunctionWriter::visitResults(Operation *op) {
  SmallVector<ShardingAttr> shardings;
  bool anyTensor = false;
  for (OpResult result : op->getResults()) {
    ShardingAttr sharding = function.shardings.lookup(result);
    anyTensor |= bool(sharding);
    ShardingAttr given = function.given.lookup(result);
    shardings.push_back(given ? given : sharding);
    if (!sharding)
      shardings.back() = ShardingAttr::getReplicated(
          FlatSymbolRefAttr::get(mesh.getSymNameAttr()), 0);
    if (!given || given == sharding)
      continue;
    OpBuilder builder = getBuilderAfter(op);
    auto redistribute = RedistributeOp::create(
        builder, op->getLoc(), result.getType(), result, sharding,
        builder.getStringAttr(getFqn(op)),
        builder.getStringAttr("tp.sharding on " +
                              op->getName().getStringRef()));
    result.replaceAllUsesExcept(redistribute, redistribute);
    function.shardings[redistribute] = sharding;
  }
  if (anyTensor)
    writeShardings(op, shardings);
}

void FunctionWriter::writeShardings(Operation *op,
                                    ArrayRef<ShardingAttr> shardings) {
  if (shardings.size() != 1)
    return setResultShardings(op, shardings);
  DictionaryAttr &after =
      placedAttrs[{op->getRawDictionaryAttrs(), shardings.front()}];
  if (after)
    return op->setDiscardableAttrs(after);
  setResultShardings(op, shardings);
  after = op->getRawDictionaryAttrs();
}

/// Replaces `op`, an identity, by its input in the placement that it needs.
LogicalResult FunctionWriter::replaceByPlaced(Operation *op,
                                              const Twine &reason) {
  Value value = getPlaced(op->getOpOperand(0), getFqn(op), reason);
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
  return success();
}

LogicalResult FunctionWriter::visitRedistribute(RedistributeOp op) {
  // If the op is over some mesh dimensions, the placement over the others may
  // have to change for it.
  if (op.getOver() && failed(visitOperands(op)))
    return failure();
  ShardingAttr target = function.shardings.lookup(op.getResult());
  op.setShardingAttr(target);
  op.removeOverAttr();
  Value input = op.getInput();
  Value same = input;
  if (function.shardings.lookup(input) != target) {
    // One redistribution serves all uses that need this placement, asked for or
    // not.
    same = placed.lookup({input, target});
    if (!same) {
      if (input.getParentBlock() == op->getBlock())
        placed[{input, target}] = op.getResult();
      return success();
    }
  }
  op.replaceAllUsesWith(same);
  op.erase();
  return success();
}

LogicalResult FunctionWriter::visitLocalView(Operation *op) {
  if (auto toLocal = dyn_cast<ToLocalOp>(op)) {
    op->setOperand(0,
                   getPlaced(op->getOpOperand(0), getFqn(op),
                             "tp.to_local as " +
                                 printPlacements(toLocal.getSharding(), mesh)));
    locals.insert(toLocal);
    return success();
  }
  if (isa<FromLocalOp>(op))
    return success();
  for (OpOperand &operand : op->getOpOperands())
    if (function.needed.contains(&operand))
      return op->emitError()
             << "mixes a local value with one that is placed "
             << printPlacements(function.shardings.lookup(operand.get()), mesh)
             << "; tp.to_local or tp.from_local must bring them together";
  locals.insert(op->result_begin(), op->result_end());
  visitResults(op);
  return success();
}

LogicalResult FunctionWriter::visit(Operation *op) {
  if (isa<ToLocalOp, FromLocalOp>(op) ||
      llvm::any_of(op->getOperands(),
                   [&](Value operand) { return locals.contains(operand); }))
    return visitLocalView(op);
  if (auto redistribute = dyn_cast<RedistributeOp>(op))
    return visitRedistribute(redistribute);
  if (auto distribute = dyn_cast<DistributeOp>(op)) {
    ShardingAttr from = function.shardings.lookup(distribute.getInput());
    if (!from.isReplicated())
      return op->emitError()
             << "the input is placed already, " << printPlacements(from, mesh)
             << "; tp.redistribute changes a placement";
    return replaceByPlaced(op, "tp.distribute");
  }
  if (isa<ConstraintOp>(op))
    return replaceByPlaced(op, "tp.constraint");
  if (isa<PropagationBarrierOp>(op)) {
    if (function.needed.contains(&op->getOpOperand(0)))
      checkImplicit(op->getOpOperand(0));
    return replaceByPlaced(op, "tp.propagation_barrier");
  }
  if (failed(visitOperands(op)))
    return failure();
  if (!isa<ShardingRuleOpInterface>(op))
    for (Region &region : op->getRegions())
      for (Operation &inner : llvm::make_early_inc_range(region.getOps()))
        if (failed(visit(&inner)))
          return failure();
  visitResults(op);
  return success();
}

LogicalResult FunctionWriter::visitReturn(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    ShardingAttr sharding = function.needed.lookup(&operand);
    if (!sharding)
      sharding = function.shardings.lookup(operand.get());
    if (!sharding) // a scalar
      continue;
    operand.set(getPlaced(operand, getFqn(op),
                          "result " + Twine(index) + " of the function is " +
                              printPlacements(sharding, mesh)));
    function.op.setResultAttr(index, kShardingAttr, sharding);
    function.op.removeResultAttr(index,
                                 StringAttr::get(op->getContext(), kOpenAttr));
  }
  return success();
}

LogicalResult FunctionWriter::run() {
  for (BlockArgument argument : function.op.getArguments())
    if (ShardingAttr sharding = function.shardings.lookup(argument)) {
      function.op.setArgAttr(argument.getArgNumber(), kShardingAttr, sharding);
      function.op.removeArgAttr(argument.getArgNumber(), kOpenAttr);
      function.op.removeArgAttr(
          argument.getArgNumber(),
          StringAttr::get(argument.getContext(), kBatchAttr));
      function.op.removeArgAttr(
          argument.getArgNumber(),
          StringAttr::get(argument.getContext(), kSequenceAttr));
    }
  Block &block = function.op.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
    if (failed(visit(&op)))
      return failure();
  if (failed(visitReturn(block.getTerminator())))
    return failure();
  return success(implicit.empty());
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The placements of `function` for `copy`, its clone.
static Propagation::Function translate(const Propagation::Function &function,
                                       func::FuncOp copy) {
  Propagation::Function result;
  result.op = copy;
  SmallVector<Operation *> originals, copies;
  auto collect = [](func::FuncOp from, SmallVectorImpl<Operation *> &ops) {
    from.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  };
  collect(func::FuncOp(function.op), originals);
  collect(copy, copies);
  auto translateValues = [&](ValueRange from, ValueRange to) {
    for (auto [value, other] : llvm::zip_equal(from, to)) {
      if (ShardingAttr sharding = function.shardings.lookup(value))
        result.shardings[other] = sharding;
      if (ShardingAttr sharding = function.given.lookup(value))
        result.given[other] = sharding;
    }
  };
  for (auto [original, other] : llvm::zip_equal(originals, copies)) {
    translateValues(original->getResults(), other->getResults());
    for (auto [from, to] :
         llvm::zip_equal(original->getRegions(), other->getRegions()))
      for (auto [block, otherBlock] : llvm::zip_equal(from, to))
        translateValues(block.getArguments(), otherBlock.getArguments());
    for (auto [from, to] :
         llvm::zip_equal(original->getOpOperands(), other->getOpOperands()))
      if (ShardingAttr sharding = function.needed.lookup(&from))
        result.needed[&to] = sharding;
    if (auto callee = function.callees.find(original);
        callee != function.callees.end())
      result.callees[other] = callee->second;
  }
  return result;
}

/// `gap` as a percentage of `least`; empty if `least` is zero.
static std::string printPercent(const CommunicationCost &gap,
                                const CommunicationCost &least) {
  if (least.volume == 0)
    return "";
  return llvm::formatv("; {0:F1} %", 100.0 * gap.volume / least.volume).str();
}

namespace {
struct Propagate : tp::impl::PropagateBase<Propagate> {
  using PropagateBase::PropagateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<MeshOp> mesh =
        getMesh(module, " to propagate placements over; declare one, or give "
                        "tp-parallelize or tp-apply-plan a plan (plan=FILE)");
    if (failed(mesh) || failed(checkSizes(module)))
      return signalPassFailure();
    inlineModules(module);
    dropGradientForms(module);
    FailureOr<SmallVector<func::FuncOp>> roots = getRoots(module);
    if (failed(roots))
      return signalPassFailure();
    PropagationOptions options{
        strategy, exhaustiveOps, latencyBytes, {oneShot, memory}};
    options.searchBudget = searchBudget;
    Propagation propagation(*mesh, options);
    if (failed(propagation.run(*roots)) ||
        failed(write(propagation.takeFunctions(), *mesh,
                     propagation.getPlanner())))
      return signalPassFailure();
    CommunicationCost least = propagation.getLowerBound();
    CommunicationCost gap = propagation.getCost() - least;
    if (strategy == PropagationStrategy::Optimal && gap.volume > 0)
      remark::analysis(module.getLoc(),
                       remark::RemarkOpts::name("Gap").category("tp-propagate"))
          << remark::reason(
                 "the search was bounded: the choice costs at most {0} bytes "
                 "of communication and latency more than the optimum, which "
                 "costs at least {1}{2}",
                 gap.volume, least.volume, printPercent(gap, least));
  }

  LogicalResult write(SmallVector<Propagation::Function> functions, MeshOp mesh,
                      RedistributionPlanner &planner) {
    // Calls with other placements call a copy of the function.
    SymbolTable symbols(getOperation());
    DenseMap<Operation *, Operation *> last;
    for (Propagation::Function &function : functions) {
      auto [it, isFirst] = last.try_emplace(function.op, function.op);
      if (isFirst)
        continue;
      func::FuncOp copy = function.op.clone();
      symbols.insert(copy, std::next(Block::iterator(it->second)));
      it->second = copy;
      function = translate(function, copy);
      ++numCopies;
    }
    bool isWritten = true;
    for (Propagation::Function &function : functions) {
      for (auto [call, callee] : function.callees) {
        func::FuncOp target = functions[callee].op;
        // Only calls in the module know how its arguments are placed.
        target.setPrivate();
        cast<CallOpInterface>(call).setCalleeFromCallable(
            FlatSymbolRefAttr::get(target.getSymNameAttr()));
      }
      isWritten &= succeeded(
          FunctionWriter(function, mesh, forbidImplicit, planner).run());
    }
    return success(isWritten);
  }
};
} // namespace
