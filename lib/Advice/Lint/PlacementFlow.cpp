//===- PlacementFlow.cpp - how a plan's placements flow through a model ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlacementFlow.h"
#include "Plan/PlanChecks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

FlowCheck::~FlowCheck() = default;

std::string KnownLayout::describe() const {
  if (placement)
    return placement->str();
  std::string dims;
  for (const SplitPart &part : parts)
    dims += (dims.empty() ? "" : " and ") + std::to_string(part.index);
  return "split along dimensions " + dims;
}

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
      if (auto child = dyn_cast<ModuleOpInterface>(&op))
        visitModule(child);
      else if (auto parameter = dyn_cast<ParameterOpInterface>(&op))
        known[parameter.getResult()] = makeKnown(getParameter(parameter));
      else if (op.getNumOperands() == 0 && op.getNumResults() == 1)
        known[op.getResult(0)] = makeKnown(Placement::replicate());
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

  static int64_t getRank(Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getRank();
  }

  int64_t getRanks() const { return context.getGroup().size; }

  KnownLayout makeKnown(Layout placement, const LayoutStep *origin = nullptr,
                        ModuleOpInterface originModule = {}) const {
    KnownLayout layout{placement, origin, originModule};
    if (placement && placement->isShard() && !placement->isSegmented())
      layout.parts = {{static_cast<unsigned>(placement->dim), getRanks()}};
    return layout;
  }

  Layout getParameter(ParameterOpInterface parameter) {
    const AxisSet &axes = context.getGroup().axes;
    for (const AxisPlacement &over :
         context.plan.getPlacements(parameter.getFqnAttr())) {
      if (over.axes == axes)
        return over.placement;
      // A placement over only some of the group's dimensions isn't one over
      // all.
      if (llvm::any_of(over.axes, [&](unsigned axis) {
            return llvm::is_contained(axes, axis);
          }))
        return std::nullopt;
    }
    return Placement::replicate();
  }

  void visitModule(ModuleOpInterface module) {
    for (unsigned i = 0; i < module.getInputs().size(); ++i)
      known[module.getBodyBlock()->getArgument(i)] =
          passBoundary(module, /*isInput=*/true, i, module.getInputs()[i]);
    visit(*module.getBodyBlock(), module.getFqn());
    for (unsigned i = 0; i < module->getNumResults(); ++i)
      known[module->getResult(i)] =
          passBoundary(module, /*isInput=*/false, i,
                       module.getBodyBlock()->getTerminator()->getOperand(i));
  }

  /// The layout that `value` gets as input or output `index` of `module`.
  KnownLayout passBoundary(ModuleOpInterface module, bool isInput,
                           unsigned index, Value value) {
    KnownLayout layout = known.lookup(value);
    for (const ModuleLayouts *layouts : layoutsOf.lookup(module)) {
      const BoundarySteps &steps = isInput ? layouts->inputs : layouts->outputs;
      for (const LayoutStep &step : steps[index]) {
        std::string fqn = describeModule(module.getFqn());
        std::string tensor =
            isInput ? "input '" +
                          cast<StringAttr>(module.getArgNames()[index]).str() +
                          "' of " + fqn
                    : "output " + std::to_string(index) + " of " + fqn;
        if (step.declared && layout.placement)
          for (FlowCheck *check : checks)
            check->visitDeclared(value, layout, step, tensor);
        if (layout.apart && layout.placement != step.placement)
          reportApart(layout);
        layout = makeKnown(step.placement, &step, module);
      }
    }
    return layout;
  }

  void visitRuleOp(ShardingRuleOpInterface op, StringRef module) {
    if (auto loss = dyn_cast<nn::CrossEntropyOp>(*op)) {
      losses[op] = getOperands(loss);
      // With loss_parallel, the loss takes split logits.
      if (llvm::any_of(context.plan.losses, [&](const LossLayout &loss) {
            return loss.op == op && loss.group == context.groupIndex;
          }))
        return;
    }
    ShardingRule rule = op.getShardingRule();
    // The factors that operands are split along, and one such operand.
    SmallVector<SplitPart, 1> factors;
    OpOperand *split = nullptr;
    SmallVector<OpOperand *> conflicting;
    bool allKnown = true;
    // The factor that is split in segments, and the layout of that operand.
    std::optional<unsigned> segmentedFactor;
    KnownLayout first, segmented;
    std::optional<TakenApart> apart;
    for (OpOperand &operand : op->getOpOperands()) {
      KnownLayout layout = known.lookup(operand.get());
      if (!first.origin)
        first = layout;
      bool isWhole = layout.placement && layout.placement->isReplicate();
      if (layout.placement && layout.placement->isShard() &&
          layout.placement->isSegmented()) {
        const DimFactors &dim =
            rule.operands[operand.getOperandNumber()][layout.placement->dim];
        bool isParallel = dim.size() == 1 && rule.factors[dim.front()].kind ==
                                                 FactorKind::Parallel;
        if (isParallel && !segmentedFactor) {
          segmentedFactor = dim.front();
          segmented = layout;
          isWhole = true;
        } else if (isParallel && dim.front() == *segmentedFactor) {
          int64_t size = rule.factors[*segmentedFactor].size;
          isWhole = getSegments(*layout.placement, size) ==
                    getSegments(*segmented.placement, size);
          if (!isWhole)
            conflicting.push_back(&operand);
        }
      }
      allKnown &= isWhole || layout.isSplit();
      if (layout.placement && layout.placement->isShard())
        for (FlowCheck *check : checks)
          check->visitShard(operand, layout, module);
      if (!layout.isSplit())
        continue;
      std::optional<TakenApart> ownApart = layout.apart;
      std::optional<SmallVector<SplitPart, 1>> own =
          getFactors(rule, operand, layout, module, ownApart);
      if (!own)
        continue;
      if (split && *own != factors) {
        conflicting.push_back(&operand);
        continue;
      }
      split = &operand;
      factors = std::move(*own);
      apart = ownApart;
    }
    // Whether one factor is split both in segments and in blocks.
    bool isSplitTwice =
        segmentedFactor && llvm::any_of(factors, [&](const SplitPart &part) {
          return part.index == *segmentedFactor;
        });
    if (!conflicting.empty() || isSplitTwice) {
      if (split)
        conflicting.push_back(split);
      reportConflict(conflicting, module);
      return;
    }
    for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results)) {
      KnownLayout layout;
      if (segmentedFactor) {
        for (auto [dim, dimFactors] : llvm::enumerate(tensor))
          if (allKnown && !split &&
              dimFactors == DimFactors{*segmentedFactor}) {
            layout = segmented;
            layout.placement->dim = dim;
          }
      } else if (split) {
        const KnownLayout &from = known.lookup(split->get());
        layout = followFactors(rule, factors, tensor);
        layout.origin = from.origin;
        layout.originModule = from.originModule;
        // A split of one head's columns is kept until the head is merged again.
        if (!layout.placement || (apart && apart->majorSize == 1 &&
                                  static_cast<int64_t>(tensor.size()) >
                                      getRank(apart->operand->get())))
          layout.apart = apart;
      } else if (allKnown) {
        layout =
            makeKnown(Placement::replicate(), first.origin, first.originModule);
      }
      known[result] = layout;
    }
  }

  /// Reports operands that are split along different factors. The smallest one
  /// would be moved; if the parts of a divided dimension are split, that is
  /// reported instead.
  void reportConflict(ArrayRef<OpOperand *> operands, StringRef module) {
    OpOperand *smallest = nullptr;
    for (OpOperand *operand : operands) {
      const KnownLayout &layout = known.lookup(operand->get());
      if (layout.apart)
        return reportApart(layout);
      if (!operand->get().getDefiningOp<ParameterOpInterface>() &&
          (!smallest || getTensorBytes(operand->get().getType()) <
                            getTensorBytes(smallest->get().getType())))
        smallest = operand;
    }
    if (smallest)
      for (FlowCheck *check : checks)
        check->visitConflict(*smallest, known.lookup(smallest->get()), module);
  }

  void reportApart(const KnownLayout &layout) {
    for (FlowCheck *check : checks)
      check->visitTakenApart(*layout.apart, layout);
  }

  /// Whether to report an op even though ranks could compute it from their
  /// shards by only reducing its statistics. This is so for a loss, which needs
  /// the plan's request, and for an op along a split sequence or along parts of
  /// heads, which is probably a mistake.
  static bool isMeantWhole(OpOperand &operand, const KnownLayout &layout) {
    return isa<nn::CrossEntropyOp>(operand.getOwner()) ||
           (layout.apart && layout.apart->majorSize > 1) ||
           (layout.origin && layout.origin->argument == "sequence_dim");
  }

  /// Whether the last dimension of `whole`, which has `factor`, is the columns
  /// of one head in `heads`. That is so if `heads` only adds dimensions of size
  /// 1.
  static bool isOneHead(ArrayRef<DimFactors> whole, ArrayRef<DimFactors> heads,
                        unsigned factor) {
    auto isLarge = [](const DimFactors &dim) { return !dim.empty(); };
    return heads.size() > whole.size() && heads.back() == whole.back() &&
           whole.back() == DimFactors{factor} &&
           llvm::equal(llvm::make_filter_range(whole, isLarge),
                       llvm::make_filter_range(heads, isLarge));
  }

  /// The factors that `operand` is split along; nullopt if its op can't be
  /// split there. If there are more ranks than the size of a dimension's major
  /// factor, they split that factor and the next ones.
  std::optional<SmallVector<SplitPart, 1>>
  getFactors(const ShardingRule &rule, OpOperand &operand,
             const KnownLayout &layout, StringRef module,
             std::optional<TakenApart> &apart) {
    SmallVector<SplitPart, 1> result;
    for (const SplitPart &part : layout.parts) {
      const DimFactors &dim =
          rule.operands[operand.getOperandNumber()][part.index];
      int64_t ranks = part.ranks;
      auto fail = [&] {
        if (layout.apart)
          reportApart(layout);
        else
          for (FlowCheck *check : checks)
            check->visitWhole(operand, layout, part.index, module);
        return std::nullopt;
      };
      if (dim.empty())
        return fail();
      for (unsigned factor : dim) {
        FactorKind kind = rule.factors[factor].kind;
        if (kind == FactorKind::Whole ||
            (rule.factors[factor].reductions > 0 &&
             isMeantWhole(operand, layout)) ||
            (kind == FactorKind::Reduction && layout.parts.size() > 1))
          return fail();
        int64_t size = rule.factors[factor].size;
        if (dim.size() == 1 || size % ranks == 0) {
          if (!apart && llvm::any_of(rule.results, [&](const auto &result) {
                return isOneHead(rule.operands[operand.getOperandNumber()],
                                 result, factor);
              }))
            apart = TakenApart{&operand, part.index, 1, module};
          result.push_back({factor, ranks});
          ranks = 1;
          break;
        }
        if (!apart)
          apart = TakenApart{&operand, part.index, size, module};
        if (ranks % size != 0)
          break;
        if (size > 1)
          result.push_back({factor, size});
        ranks /= size;
      }
      if (ranks == 1)
        continue;
      if (!apart)
        return fail();
      for (FlowCheck *check : checks)
        check->visitTakenApart(*apart, layout);
      return std::nullopt;
    }
    return result;
  }

  /// The layout of a tensor with the factors `tensor` if its op is split along
  /// `factors`.
  KnownLayout followFactors(const ShardingRule &rule,
                            ArrayRef<SplitPart> factors,
                            ArrayRef<DimFactors> tensor) {
    if (factors.size() == 1 &&
        rule.factors[factors.front().index].kind == FactorKind::Reduction)
      return makeKnown(
          Placement::partial(rule.factors[factors.front().index].reduction));
    KnownLayout layout;
    for (const SplitPart &part : factors) {
      // Splitting a factor gives blocks of its dimension if it is the major
      // one, or if all factors before it are split completely.
      std::optional<unsigned> found;
      for (auto [dim, dimFactors] : llvm::enumerate(tensor)) {
        int64_t before = 1;
        for (unsigned factor : dimFactors) {
          if (factor == part.index)
            found = dim;
          if (found)
            break;
          before *= rule.factors[factor].size;
        }
        if (!found)
          continue;
        bool isNext = !layout.parts.empty() && layout.parts.back().index == dim;
        if (before != (isNext ? layout.parts.back().ranks : 1))
          return {};
        if (isNext)
          layout.parts.back().ranks *= part.ranks;
        else
          layout.parts.push_back({static_cast<unsigned>(dim), part.ranks});
        break;
      }
      if (!found)
        return {};
    }
    if (layout.parts.size() == 1 && layout.parts.front().ranks == getRanks())
      layout.placement = Placement::shard(layout.parts.front().index);
    return layout;
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
  for (FlowCheck *check : checks)
    check->finish();
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
