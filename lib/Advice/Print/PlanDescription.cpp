//===- PlanDescription.cpp - The data to print of a plan ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanDescription.h"
#include "tp/Dialect/TP/Elements.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

static void addSteps(TensorDescription &tensor, const AxisSet &axes,
                     ArrayRef<LayoutStep> steps) {
  for (const LayoutStep &step : steps)
    for (unsigned axis : axes) {
      if (step.declared)
        tensor.declared[axis] = step.placement;
      tensor.placements[axis] = step.placement;
    }
}

std::vector<ModuleDescription> plan::describe(const CheckedPlan &plan,
                                              ModuleOp model) {
  size_t numAxes = plan.file.mesh.size();
  std::vector<ModuleDescription> modules;
  llvm::DenseMap<StringAttr, size_t> indices;
  llvm::DenseSet<StringAttr> seenParameters;
  auto makeTensor = [&](StringRef name, Type type) {
    return TensorDescription{name, cast<RankedTensorType>(type),
                             SmallVector<Layout>(numAxes),
                             SmallVector<Layout>(numAxes)};
  };
  model.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto module = dyn_cast<ModuleOpInterface>(op)) {
      if (!indices.insert({module.getFqnAttr(), modules.size()}).second)
        return;
      ModuleDescription &description = modules.emplace_back();
      description.fqn = module.getFqn();
      description.className = module.getClassName();
      for (auto [name, input] :
           llvm::zip(module.getArgNames(), module.getInputs()))
        description.inputs.push_back(
            makeTensor(cast<StringAttr>(name).getValue(), input.getType()));
      for (Value result : module->getResults())
        description.outputs.push_back(makeTensor("", result.getType()));
      for (const ModuleLayouts &layouts : plan.modules) {
        if (layouts.module != module)
          continue;
        description.styles.push_back({layouts.entry, layouts.group});
        const AxisSet &axes = plan.groups[layouts.group].axes;
        for (auto [tensor, steps] :
             llvm::zip(description.inputs, layouts.inputs))
          addSteps(tensor, axes, steps);
        for (auto [tensor, steps] :
             llvm::zip(description.outputs, layouts.outputs))
          addSteps(tensor, axes, steps);
      }
      return;
    }
    auto parameter = dyn_cast<ParameterOpInterface>(op);
    if (!parameter || !seenParameters.insert(parameter.getFqnAttr()).second)
      return;
    auto holder = parameter->getParentOfType<ModuleOpInterface>();
    if (!holder)
      return;
    RankedTensorType type = parameter.getType();
    SmallVector<AxisPlacement> placements =
        plan.getPlacements(parameter.getFqnAttr());
    auto it = plan.parameters.find(parameter.getFqnAttr());
    modules[indices[holder.getFqnAttr()]].parameters.push_back(
        {parameter.getFqn(), type, getPlacementList(placements, plan.file.mesh),
         getTensorBytes(type), plan.getBytesPerRank(parameter),
         it == plan.parameters.end() ? nullptr : it->second.front().entry});
  });
  return modules;
}

template <typename Range>
static std::string join(const Range &placements) {
  std::string text;
  for (const Layout placement : placements)
    text += (text.empty() ? "" : ", ") + (placement ? placement->str() : "-");
  return placements.size() == 1 ? text : "(" + text + ")";
}

std::string plan::printList(ArrayRef<Layout> placements) {
  return join(placements);
}

std::string plan::printList(ArrayRef<Placement> placements) {
  return join(placements);
}
