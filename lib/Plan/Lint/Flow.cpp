//===- Flow.cpp - how a plan's placements flow through a model ------------===//

#include "Flow.h"
#include "Lint.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

FlowCheck::~FlowCheck() = default;

namespace {

class Flow {
public:
  Flow(FlowContext &context, ArrayRef<FlowCheck *> checks)
      : context(context), checks(checks) {
    for (const ModuleLayouts &layouts : context.plan.modules)
      if (layouts.group == context.groupIndex)
        layoutsOf[layouts.module].push_back(&layouts);
  }

  void visit(Block &block, StringRef module) {
    for (Operation &op : block) {
      if (auto child = dyn_cast<nn::ModuleOp>(&op))
        visitModule(child);
      else if (auto parameter = dyn_cast<nn::ParameterOp>(&op))
        known[parameter] = getParameter(parameter);
      else if (op.getNumOperands() == 0 && op.getNumResults() == 1)
        known[op.getResult(0)] = {Placement::replicate()};
      else if (auto ruleOp = dyn_cast<ShardingRuleOpInterface>(&op))
        visitRuleOp(ruleOp, module);
    }
  }

  llvm::DenseMap<Operation *, LossOperands> losses;

private:
  LossOperands getOperands(nn::CrossEntropyOp loss) {
    Value logits = loss.getInput();
    int64_t classDim = loss.getInput().getType().getRank() == 1 ? 0 : 1;
    while (!known.lookup(logits).placement) {
      auto flatten = logits.getDefiningOp<nn::ReshapeOp>();
      if (!flatten || loss.getInput().getType().getRank() != 2 ||
          flatten.getInput().getType().getRank() < 2 ||
          flatten.getInput().getType().getShape().back() !=
              flatten.getType().getShape().back())
        break;
      logits = flatten.getInput();
      classDim = flatten.getInput().getType().getRank() - 1;
    }
    return {known.lookup(logits), known.lookup(loss.getTarget()), classDim};
  }

  KnownLayout getParameter(nn::ParameterOp parameter) {
    const AxisSet &axes = context.getGroup().axes;
    for (const AxisPlacement &over :
         context.plan.getPlacements(parameter.getFqnAttr())) {
      if (over.axes == axes)
        return {over.placement};
      // Along some of the dimensions is another thing than along all.
      if (llvm::any_of(over.axes, [&](unsigned axis) {
            return llvm::is_contained(axes, axis);
          }))
        return {};
    }
    return {Placement::replicate()};
  }

  void visitModule(nn::ModuleOp module) {
    for (unsigned i = 0; i < module.getInputs().size(); ++i)
      known[module.getBodyBlock()->getArgument(i)] =
          passBoundary(module, /*isInput=*/true, i, module.getInputs()[i]);
    visit(*module.getBodyBlock(), module.getFqn());
    for (unsigned i = 0; i < module.getNumResults(); ++i)
      known[module.getResult(i)] =
          passBoundary(module, /*isInput=*/false, i,
                       module.getBodyBlock()->getTerminator()->getOperand(i));
  }

  /// What `value` becomes as input or output `index` of `module`.
  KnownLayout passBoundary(nn::ModuleOp module, bool isInput, unsigned index,
                           Value value) {
    KnownLayout layout = known.lookup(value);
    for (const ModuleLayouts *layouts : layoutsOf.lookup(module)) {
      const BoundarySteps &steps = isInput ? layouts->inputs : layouts->outputs;
      for (const LayoutStep &step : steps[index]) {
        std::string fqn = module.getFqn().empty()
                              ? "the root module"
                              : "'" + module.getFqn().str() + "'";
        std::string tensor =
            isInput ? "input '" +
                          cast<StringAttr>(module.getArgNames()[index]).str() +
                          "' of " + fqn
                    : "output " + std::to_string(index) + " of " + fqn;
        if (step.declared && layout.placement)
          for (FlowCheck *check : checks)
            check->visitDeclared(value, layout, step, tensor);
        layout = {step.placement, &step};
      }
    }
    return layout;
  }

  void visitRuleOp(ShardingRuleOpInterface op, StringRef module) {
    if (auto loss = dyn_cast<nn::CrossEntropyOp>(*op)) {
      losses[op] = getOperands(loss);
      // Under loss_parallel it takes its logits split.
      if (llvm::any_of(context.plan.losses, [&](const LossLayout &loss) {
            return loss.op == op && loss.group == context.groupIndex;
          }))
        return;
    }
    ShardingRule rule = op.getShardingRule();
    // The factors that operands are split along, and which operand it is.
    llvm::MapVector<unsigned, OpOperand *> factors;
    bool allKnown = true;
    const LayoutStep *origin = nullptr;
    for (OpOperand &operand : op->getOpOperands()) {
      KnownLayout layout = known.lookup(operand.get());
      origin = origin ? origin : layout.origin;
      allKnown &= layout.placement.has_value();
      if (layout.placement && layout.placement->isShard() &&
          layout.placement->isSegmented())
        allKnown = false;
      if (layout.placement && layout.placement->isPartial())
        allKnown = false;
      if (layout.isSplit())
        addFactor(rule, operand, layout, module, factors);
    }
    if (factors.size() > 1) {
      OpOperand *smallest = nullptr;
      for (OpOperand *operand : llvm::make_second_range(factors))
        if (!operand->get().getDefiningOp<nn::ParameterOp>() &&
            (!smallest || getTensorBytes(operand->get().getType()) <
                              getTensorBytes(smallest->get().getType())))
          smallest = operand;
      if (smallest)
        for (FlowCheck *check : checks)
          check->visitConflict(*smallest, known.lookup(smallest->get()),
                               module);
      return;
    }
    for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results)) {
      KnownLayout layout;
      if (factors.empty()) {
        if (allKnown)
          layout = {Placement::replicate(), origin};
      } else {
        auto [factor, operand] = factors.front();
        layout.origin = known.lookup(operand->get()).origin;
        if (rule.factors[factor].kind == FactorKind::Reduction)
          layout.placement = Placement::partial(rule.factors[factor].reduction);
        for (auto [dim, dimFactors] : llvm::enumerate(tensor))
          if (!dimFactors.empty() && dimFactors.front() == factor)
            layout.placement = Placement::shard(dim);
      }
      known[result] = layout;
    }
  }

  /// Adds the factor that `operand` is split along, unless its op can't be
  /// split there.
  void addFactor(const ShardingRule &rule, OpOperand &operand,
                 const KnownLayout &layout, StringRef module,
                 llvm::MapVector<unsigned, OpOperand *> &factors) {
    for (FlowCheck *check : checks)
      check->visitSplit(operand, layout, module);
    const DimFactors &dim =
        rule.operands[operand.getOperandNumber()][layout.placement->dim];
    unsigned factor = dim.empty() ? 0 : dim.front();
    // What only costs collectives (all but a loss that is asked to) runs split
    // here, but whole in PyTorch.
    if (dim.empty() || rule.factors[factor].kind == FactorKind::Whole ||
        rule.factors[factor].reductions > 0) {
      for (FlowCheck *check : checks)
        check->visitWhole(operand, layout, module);
      return;
    }
    int64_t size = rule.factors[factor].size;
    if (dim.size() > 1 && size % context.getGroup().size != 0) {
      for (FlowCheck *check : checks)
        check->visitMajorPart(operand, layout, size, module);
      return;
    }
    factors.insert({factor, &operand});
  }

  FlowContext &context;
  ArrayRef<FlowCheck *> checks;
  llvm::DenseMap<Operation *, SmallVector<const ModuleLayouts *, 1>> layoutsOf;
  llvm::DenseMap<Value, KnownLayout> known;
};

} // namespace

llvm::DenseMap<Operation *, LossOperands>
plan::followPlacements(FlowContext &context, ModuleOp model,
                       ArrayRef<FlowCheck *> checks) {
  Flow flow(context, checks);
  for (auto function : model.getOps<FunctionOpInterface>())
    for (Block &block : function.getFunctionBody())
      flow.visit(block, "");
  return std::move(flow.losses);
}

int64_t plan::getReceivedBytes(const Placement &from, const Placement &to,
                               Type type, int64_t ranks) {
  if (from == to || from.isReplicate() || ranks < 2)
    return 0;
  int64_t bytes = getTensorBytes(type);
  int64_t others = bytes - bytes / ranks;
  if (from.isPartial())
    return to.isReplicate() ? 2 * others : others;
  return to.isReplicate() ? others : others / ranks;
}

std::string plan::printPlace(FileLineColLoc loc) {
  return (llvm::sys::path::filename(loc.getFilename().getValue()) + ":" +
          Twine(loc.getLine()) + ":" + Twine(loc.getColumn()))
      .str();
}
