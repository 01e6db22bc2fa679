//===- PlanWriter.cpp - A checked plan, written into the IR ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanWriter.h"
#include "DataParallel.h"
#include "mlir/IR/Builders.h"
#include "tp/Transforms/ExpertDispatch.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Writes one plan.
class PlanWriter {
public:
  explicit PlanWriter(const plan::CheckedPlan &checked) : plan(&checked) {}

  WrittenPlan write(ModuleOp model) {
    const plan::CheckedPlan &checked = *plan;
    mesh = FlatSymbolRefAttr::get(insertMesh(checked.file, model));
    model.walk([&](ParameterOpInterface parameter) {
      if (checked.parameters.contains(parameter.getFqnAttr()))
        parameter->setAttr(
            kShardingAttr,
            getSharding(checked.getPlacements(parameter.getFqnAttr()),
                        parameter.getType()));
    });
    written.parameters = checked.parameters.size();
    for (auto function : model.getOps<FunctionOpInterface>())
      if (!function.isExternal())
        placeInterface(function);
    for (const plan::ModuleLayouts &layouts : checked.modules)
      layOut(layouts);
    for (const plan::LossLayout &layout : checked.losses) {
      nn::CrossEntropyOp loss = layout.op;
      OpBuilder builder(loss);
      loss.setLossParallel(true);
      loss.getInputMutable().assign(
          redistribute(builder, loss.getInput(), layout.logits, layout.group,
                       loss->getParentOfType<ModuleOpInterface>()));
    }
    return written;
  }

private:
  //===--------------------------------------------------------------------===//
  // Module boundaries
  //===--------------------------------------------------------------------===//

  ShardingAttr getSharding(ArrayRef<plan::AxisPlacement> placements,
                           Type type) {
    // The check of the plan has made sure that the sharding exists.
    return *plan::getSharding(placements, plan->file.mesh, mesh,
                              cast<RankedTensorType>(type).getShape(),
                              [](const Twine &) {});
  }

  Value redistribute(OpBuilder &builder, Value value,
                     const plan::LayoutStep &step, unsigned group,
                     ModuleOpInterface module) {
    ++written.redistributions;
    const plan::AxisSet &axes = plan->groups[group].axes;
    auto op = RedistributeOp::create(
        builder, module ? module.getLoc() : value.getLoc(), value.getType(),
        value, getSharding({{axes, step.placement}}, value.getType()),
        module ? module.getFqnAttr() : builder.getStringAttr(""),
        builder.getStringAttr(step.reason));
    if (!plan->coversMesh(group)) {
      SmallVector<AxisRefAttr> over;
      for (unsigned axis : axes)
        over.push_back(
            AxisRefAttr::get(builder.getContext(), plan->file.mesh[axis].name));
      op.setOverAttr(AxisListAttr::get(builder.getContext(), over));
    }
    return op;
  }

  void layOut(const plan::ModuleLayouts &layouts) {
    ModuleOpInterface module = layouts.module;
    OpBuilder builder(module);
    for (auto [index, steps] : llvm::enumerate(layouts.inputs)) {
      OpOperand &operand = module->getOpOperand(index);
      for (const plan::LayoutStep &step : steps)
        operand.set(
            redistribute(builder, operand.get(), step, layouts.group, module));
    }
    for (auto [result, steps] :
         llvm::zip(module->getResults(), layouts.outputs)) {
      builder.setInsertionPointAfter(module);
      Value value = result;
      // Another entry may already have laid out the result over other mesh
      // dimensions.
      SmallVector<Operation *> own;
      for (const plan::LayoutStep &step : steps) {
        value = redistribute(builder, value, step, layouts.group, module);
        own.push_back(value.getDefiningOp());
      }
      if (!steps.empty())
        result.replaceUsesWithIf(value, [&](OpOperand &use) {
          return !llvm::is_contained(own, use.getOwner());
        });
    }
  }

  //===--------------------------------------------------------------------===//
  // The entry point
  //===--------------------------------------------------------------------===//

  /// The layout steps of a module's input or output over a group of mesh
  /// dimensions.
  ArrayRef<plan::LayoutStep> getSteps(ModuleOpInterface module, unsigned group,
                                      bool isInput, unsigned index) const {
    for (const plan::ModuleLayouts &layouts : plan->modules) {
      if (layouts.module != module || layouts.group != group)
        continue;
      const plan::BoundarySteps &steps =
          isInput ? layouts.inputs : layouts.outputs;
      if (!steps[index].empty())
        return steps[index];
    }
    return {};
  }

  /// The placement that the plan declares for `value` at all of its uses; none
  /// if they differ, or if a use isn't a module with a layout.
  plan::Layout getDeclared(Value value, unsigned group) const {
    plan::Layout declared;
    for (OpOperand &use : value.getUses()) {
      auto module = dyn_cast<ModuleOpInterface>(use.getOwner());
      if (!module)
        return std::nullopt;
      unsigned index = use.getOperandNumber();
      ArrayRef<plan::LayoutStep> steps =
          getSteps(module, group, /*isInput=*/true, index);
      plan::Layout own =
          steps.empty()
              ? getDeclared(module.getBodyBlock()->getArgument(index), group)
              : steps.front().placement;
      if (!own || own->isPartial() || (declared && own != declared))
        return std::nullopt;
      declared = own;
    }
    return declared;
  }

  /// The placement that a module's layout gives to `value`; none if `value`
  /// doesn't come from such a module.
  plan::Layout getGiven(Value value, unsigned group) const {
    auto result = dyn_cast<OpResult>(value);
    auto module = value.getDefiningOp<ModuleOpInterface>();
    if (!module)
      return std::nullopt;
    unsigned index = result.getResultNumber();
    ArrayRef<plan::LayoutStep> steps =
        getSteps(module, group, /*isInput=*/false, index);
    // A program doesn't return Partial values.
    if (!steps.empty() && steps.back().placement.isPartial())
      return std::nullopt;
    if (!steps.empty())
      return steps.back().placement;
    return getGiven(module.getBodyBlock()->getTerminator()->getOperand(index),
                    group);
  }

  /// Gives the entry point's arguments and results the placements that the plan
  /// declares for them at modules. A rank then takes and returns its shards.
  void placeInterface(FunctionOpInterface function) {
    auto collect = [&](Value value, auto getLayout) -> ShardingAttr {
      SmallVector<plan::AxisPlacement> placements;
      for (unsigned group = 0; group < plan->groups.size(); ++group)
        if (plan::Layout layout = getLayout(value, group))
          placements.push_back({plan->groups[group].axes, *layout});
      return placements.empty() ? ShardingAttr()
                                : getSharding(placements, value.getType());
    };
    for (BlockArgument argument : function.getArguments())
      if (ShardingAttr sharding = collect(
              argument, [&](Value v, unsigned g) { return getDeclared(v, g); }))
        function.setArgAttr(argument.getArgNumber(), kShardingAttr, sharding);
    Block &block = function.getFunctionBody().front();
    for (OpOperand &operand : block.getTerminator()->getOpOperands())
      if (ShardingAttr sharding =
              collect(operand.get(),
                      [&](Value v, unsigned g) { return getGiven(v, g); }))
        function.setResultAttr(operand.getOperandNumber(), kShardingAttr,
                               sharding);
  }

  /// Inserts the mesh at the start of the module and returns its symbol.
  static StringAttr insertMesh(const plan::PlanFile &file, ModuleOp model) {
    OpBuilder builder = OpBuilder::atBlockBegin(model.getBody());
    SmallVector<StringRef> names;
    SmallVector<int64_t> sizes;
    for (const plan::MeshAxis &axis : file.mesh) {
      names.push_back(axis.name);
      sizes.push_back(axis.size);
    }
    DenseI64ArrayAttr devices;
    if (!file.devices.empty())
      devices = builder.getDenseI64ArrayAttr(file.devices);
    auto op = MeshOp::create(builder, model.getLoc(), "mesh",
                             builder.getStrArrayAttr(names), sizes, devices);
    return SymbolTable(model).insert(op);
  }

  const plan::CheckedPlan *plan;
  FlatSymbolRefAttr mesh;
  WrittenPlan written;
};

} // namespace

/// Declares the pipeline, and marks the ops of its stages: a stage has the ops
/// from its module on, in the order in which the model runs them.
static void writePipeline(const plan::CheckedPlan &plan, ModuleOp model) {
  const plan::PipelineAxis &pipeline = *plan.file.pipeline;
  MeshOp mesh = *model.getOps<MeshOp>().begin();
  OpBuilder builder(model.getContext());
  builder.setInsertionPointAfter(mesh);
  PipelineOp::create(
      builder, model.getLoc(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      builder.getStringAttr(plan.file.mesh[pipeline.axis].name),
      builder.getStringAttr(stringifyPipelineSchedule(pipeline.schedule)),
      builder.getI64IntegerAttr(pipeline.microbatches),
      pipeline.stagesPerRank > 1
          ? builder.getI64IntegerAttr(plan.stages.size() + 1)
          : IntegerAttr());
  int64_t stage = 0;
  ModuleOpInterface first = plan.stages.front();
  auto function = first->getParentOfType<FunctionOpInterface>();
  function.getFunctionBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<ModuleOpInterface>(op))
      stage += llvm::is_contained(plan.stages, op);
    else if (op->getNumResults() && !isa<ParameterOpInterface>(op) &&
             isa<ModuleOpInterface, FunctionOpInterface>(op->getParentOp()))
      op->setAttr(kStageAttr, builder.getI64IntegerAttr(stage));
  });
}

/// How the ranks of `plan` divide the tokens of experts.
static TokenBlocks getTokenBlocks(const plan::PlanFile &plan) {
  TokenBlocks blocks;
  blocks.parts = plan.mesh[plan.experts->axis].size;
  for (const plan::DataAxis &data : plan.data)
    if (data.axis != plan.experts->axis)
      blocks.major *= plan.mesh[data.axis].size;
  if (plan.context)
    blocks.minor = plan.mesh[plan.context->axis].size;
  return blocks;
}

FailureOr<WrittenPlan> tp::writePlan(const plan::CheckedPlan &plan,
                                     ModuleOp model) {
  WrittenPlan written = PlanWriter(plan).write(model);
  // First, while the modules that begin stages are there.
  if (plan.file.pipeline)
    writePipeline(plan, model);
  if (plan.file.experts &&
      failed(dispatchExperts(model, getTokenBlocks(plan.file))))
    return failure();
  if (!plan.file.data.empty() || plan.file.context)
    applyDataParallel(plan, model, *model.getOps<MeshOp>().begin());
  return written;
}
