//===- PlacementFlow.cpp - Flow of placements through a model -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlacementFlow.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Sharding/SplitInference.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

FlowCheck::~FlowCheck() = default;

SmallVector<unsigned, 1> KnownLayout::getSplitDims() const {
  SmallVector<unsigned, 1> split;
  if (sharding)
    for (auto [dim, axes] : llvm::enumerate(sharding.getDims()))
      if (!axes.empty())
        split.push_back(dim);
  return split;
}

Layout KnownLayout::getPlacement() const {
  if (!sharding)
    return std::nullopt;
  if (sharding.isReplicated())
    return Placement::replicate();
  SmallVector<unsigned, 1> split = getSplitDims();
  if (split.empty())
    return Placement::partial(sharding.getPartial().front().getKind());
  AxisListAttr axes = sharding.getDims()[split.front()];
  if (split.size() > 1 || sharding.isPartial() ||
      !axes.getAxes().front().isWhole())
    return std::nullopt;
  ArrayRef<int64_t> segments = axes.getSegments();
  if (llvm::all_equal(segments))
    return Placement::stridedShard(split.front(),
                                   std::max<int64_t>(segments.size(), 1));
  Placement placement = Placement::shard(split.front());
  llvm::append_range(placement.segments, segments);
  return placement;
}

std::string KnownLayout::describe() const {
  if (Layout placement = getPlacement())
    return placement->str();
  return "split along dimensions " +
         llvm::join(
             llvm::map_range(getSplitDims(),
                             [](unsigned dim) { return std::to_string(dim); }),
             " and ");
}

FlowContext::FlowContext(CheckedPlan &plan, unsigned groupIndex,
                         MLIRContext *context)
    : plan(plan), groupIndex(groupIndex) {
  OpBuilder builder(context);
  StringRef name = getGroup().name;
  mesh = MeshOp::create(builder, builder.getUnknownLoc(), "mesh",
                        builder.getStrArrayAttr(name), {getGroup().size},
                        DenseI64ArrayAttr());
}

ShardingAttr FlowContext::getSharding(const Placement &placement,
                                      Type type) const {
  MeshOp op = *mesh;
  // The plan's checks have reported a placement that no sharding expresses.
  FailureOr<ShardingAttr> sharding = plan::getSharding(
      {{{0}, placement}}, {{getGroup().name, getGroup().size}},
      FlatSymbolRefAttr::get(op.getSymNameAttr()),
      cast<RankedTensorType>(type).getShape(), [](const Twine &) {});
  return succeeded(sharding) ? *sharding : ShardingAttr();
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
        known[parameter.getResult()] = {getParameter(parameter)};
      else if (op.getNumOperands() == 0 && op.getNumResults() == 1)
        known[op.getResult(0)] = {getReplicated(op.getResult(0))};
      else if (auto ruleOp = dyn_cast<ShardingRuleOpInterface>(&op))
        visitRuleOp(ruleOp, module);
    }
  }

  llvm::DenseMap<Operation *, LossOperands> losses;

private:
  LossOperands getOperands(nn::CrossEntropyOp loss) {
    Value logits = loss.getInput();
    int64_t classDim = loss.getInput().getType().getRank() == 1 ? 0 : 1;
    // Where the sequence is split, the flattened logits are split in segments.
    for (Layout placement; !(placement = known.lookup(logits).getPlacement()) ||
                           placement->isSegmented();) {
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

  ShardingAttr getReplicated(Value value) const {
    if (isa<RankedTensorType>(value.getType()))
      return context.getSharding(Placement::replicate(), value.getType());
    // Scalars are the same on all ranks.
    MeshOp mesh = *context.mesh;
    return ShardingAttr::getReplicated(
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()), 0);
  }

  ShardingAttr getParameter(ParameterOpInterface parameter) const {
    const AxisSet &axes = context.getGroup().axes;
    for (const AxisPlacement &over :
         context.plan.getPlacements(parameter.getFqnAttr())) {
      if (over.axes == axes)
        return context.getSharding(over.placement, parameter.getType());
      // A placement over only some of the group's dimensions isn't one over
      // all.
      if (llvm::any_of(over.axes, [&](unsigned axis) {
            return llvm::is_contained(axes, axis);
          }))
        return {};
    }
    return getReplicated(parameter.getResult());
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
        ShardingAttr placed =
            context.getSharding(step.placement, value.getType());
        if (step.declared && layout.getPlacement())
          for (FlowCheck *check : checks)
            check->visitDeclared(value, layout, step, tensor);
        if (layout.apart && layout.sharding != placed)
          reportApart(layout);
        layout = {placed, &step, module,
                  cast<RankedTensorType>(value.getType())};
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
    // How the op is split, the operand that this follows from, and the layout
    // that results follow from.
    std::optional<OpSplit> split;
    OpOperand *first = nullptr;
    KnownLayout from;
    std::optional<TakenApart> apart;
    SmallVector<OpOperand *> different;
    bool allReplicated = true;
    for (OpOperand &operand : op->getOpOperands()) {
      KnownLayout layout = known.lookup(operand.get());
      if (!split && !from.origin)
        from = layout;
      allReplicated &= layout.sharding && layout.sharding.isReplicated();
      if (Layout placement = layout.getPlacement();
          placement && placement->isShard())
        for (FlowCheck *check : checks)
          check->visitShard(operand, layout, module);
      if (layout.getSplitDims().empty())
        continue;
      std::optional<TakenApart> ownApart = layout.apart;
      std::optional<OpSplit> own =
          getSplit(rule, operand, layout, module, ownApart);
      if (!own)
        continue;
      if (split && (own->factorAxes != split->factorAxes ||
                    own->factorSegments != split->factorSegments))
        different.push_back(&operand);
      if (split)
        continue;
      split = std::move(own);
      from = layout;
      first = &operand;
      apart = ownApart;
    }
    if (!different.empty()) {
      different.push_back(first);
      return reportConflict(different, module);
    }
    if (!split && allReplicated)
      split = getReplicatedSplit(rule, *context.mesh);
    if (!split)
      return;
    for (auto [index, result] : llvm::enumerate(op->getResults())) {
      KnownLayout layout{getResultSharding(rule, *split, index), from.origin,
                         from.originModule, from.originType};
      // A split of one head's columns is kept until the head is merged again.
      if (!layout.getPlacement() ||
          (apart && apart->majorSize == 1 &&
           static_cast<int64_t>(rule.results[index].size()) >
               getRank(apart->operand->get())))
        layout.apart = apart;
      known[result] = layout;
    }
  }

  /// Reports operands that are split along different factors. The smallest one
  /// would be moved; if the parts of a divided dimension are split, that is
  /// reported instead.
  void reportConflict(ArrayRef<OpOperand *> operands, StringRef module) {
    auto getBytes = [](OpOperand *operand) {
      return getTensorBytes(cast<RankedTensorType>(operand->get().getType()));
    };
    OpOperand *smallest = nullptr;
    for (OpOperand *operand : operands) {
      const KnownLayout &layout = known.lookup(operand->get());
      if (layout.apart)
        return reportApart(layout);
      if (!operand->get().getDefiningOp<ParameterOpInterface>() &&
          (!smallest || getBytes(operand) < getBytes(smallest)))
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

  /// Whether to report an op that is split along `factor`, even though ranks
  /// could compute it from their shards by only reducing its statistics. This
  /// is so if no result has the factor, as in a loss, which needs the plan's
  /// request, and for an op along a split sequence or along parts of heads,
  /// which is probably a mistake.
  static bool isMeantWhole(const ShardingRule &rule, unsigned factor,
                           const KnownLayout &layout) {
    if (rule.factors[factor].reductions == 0)
      return false;
    return llvm::none_of(rule.results,
                         [&](const TensorFactors &tensor) {
                           return llvm::is_contained(tensor,
                                                     DimFactors{factor});
                         }) ||
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

  /// The split of the op that the placement of `operand` alone asks for; nullopt
  /// if the op can't be split so. Sets `apart` if the ranks don't divide the
  /// major part of a dimension.
  std::optional<OpSplit> getSplit(const ShardingRule &rule, OpOperand &operand,
                                  const KnownLayout &layout, StringRef module,
                                  std::optional<TakenApart> &apart) {
    unsigned number = operand.getOperandNumber();
    SmallVector<ShardingAttr> shardings(rule.operands.size());
    shardings[number] = layout.sharding;
    std::optional<OpSplit> split = inferSplit(rule, *context.mesh, shardings);
    const TensorFactors &tensor = rule.operands[number];
    SmallVector<unsigned, 1> dims = layout.getSplitDims();
    for (unsigned dim : dims) {
      auto isWhole = [&](unsigned factor) {
        FactorKind kind = rule.factors[factor].kind;
        bool isSplit = split ? !split->factorAxes[factor].empty()
                             : factor == tensor[dim].front();
        return isSplit && (kind == FactorKind::Whole ||
                           isMeantWhole(rule, factor, layout) ||
                           (kind == FactorKind::Reduction && dims.size() > 1));
      };
      if (tensor[dim].empty() || llvm::any_of(tensor[dim], isWhole)) {
        if (layout.apart)
          reportApart(layout);
        else
          for (FlowCheck *check : checks)
            check->visitWhole(operand, layout, dim, module);
        return std::nullopt;
      }
      AxisListAttr axes = layout.sharding.getDims()[dim];
      unsigned major = tensor[dim].front();
      int64_t size = rule.factors[major].size;
      if (apart || !axes.getSegments().empty())
        continue;
      if (tensor[dim].size() > 1 &&
          size % MeshOp(*context.mesh).getAxesSize(axes.getAxes()) != 0)
        apart = TakenApart{&operand, dim, size, module};
      else if (llvm::any_of(rule.results, [&](const TensorFactors &result) {
                 return isOneHead(tensor, result, major);
               }))
        apart = TakenApart{&operand, dim, 1, module};
    }
    if (!split && apart)
      for (FlowCheck *check : checks)
        check->visitTakenApart(*apart, layout);
    return split;
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
  int64_t bytes = getTensorBytes(cast<RankedTensorType>(type));
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
