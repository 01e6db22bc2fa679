//===- ExplainNames.cpp - Names in explanations ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Advice/Lint/PlacementFlow.h"
#include "Explain.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Plan/Finding.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::explain;

std::string explain::printLocation(Location loc) {
  auto file = loc->findInstanceOf<FileLineColLoc>();
  return file ? plan::printPlace(file) : "";
}

std::string explain::printOp(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  StringRef fqn = getFqn(op);
  if (auto parameter = dyn_cast<ParameterOpInterface>(op))
    return "'" + parameter.getFqn().str() + "'";
  if (!fqn.empty())
    return name + " (" + fqn.str() + ")";
  std::string place = printLocation(op->getLoc());
  return place.empty() ? name : name + " (" + place + ")";
}

std::string explain::getArgumentName(func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(index, kNameAttr);
  return name ? name.getValue().str() : "";
}

static std::string printArgument(func::FuncOp function, unsigned index) {
  std::string name = getArgumentName(function, index);
  return "argument " + std::to_string(index) +
         (name.empty() ? "" : " '" + name + "'");
}

std::string explain::printValue(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto function = dyn_cast<func::FuncOp>(parent))
      return printArgument(function, argument.getArgNumber());
    return "argument " + std::to_string(argument.getArgNumber()) +
           " of the body of " + printOp(parent);
  }
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  return printOp(op) + (op->getNumResults() > 1
                            ? " result " + std::to_string(index)
                            : std::string());
}

/// The style of data parallelism over `axis`; null if there is none.
static const plan::DataAxis *getDataAxis(unsigned axis,
                                         const plan::CheckedPlan &plan) {
  auto found = llvm::find_if(plan.file.data, [&](const plan::DataAxis &data) {
    return data.axis == axis;
  });
  return found == plan.file.data.end() ? nullptr : &*found;
}

static bool isExpertAxis(unsigned axis, const plan::CheckedPlan &plan) {
  return plan.file.experts && plan.file.experts->axis == axis;
}

static bool isContextAxis(unsigned axis, const plan::CheckedPlan &plan) {
  return plan.file.context && plan.file.context->axis == axis;
}

/// What determines the placement of an argument or a result over `axis`.
static std::string getInterfaceReason(const PlacementSource &source,
                                      unsigned axis, const Program &program) {
  if (source.isDefault)
    return "replicated by default";
  if (const plan::DataAxis *data =
          program.plan ? getDataAxis(axis, *program.plan) : nullptr)
    return plan::printReason(data->loc, isExpertAxis(axis, *program.plan)
                                            ? "expert_parallel"
                                            : "data_parallel");
  if (program.plan && isContextAxis(axis, *program.plan))
    return plan::printReason(program.plan->file.context->loc,
                             "context_parallel");
  return program.plan ? "by the plan's layouts" : "tp.sharding";
}

/// What determines the placement of a parameter over `axis`.
static std::string getParameterReason(ParameterOpInterface parameter,
                                      unsigned axis,
                                      const plan::CheckedPlan &plan) {
  auto found = plan.parameters.find(parameter.getFqnAttr());
  if (found != plan.parameters.end())
    for (const plan::ParameterLayout &layout : found->second)
      if (llvm::is_contained(layout.over.axes, axis))
        return plan::printReason(layout.entry->loc,
                                 layout.entry->direct.empty()
                                     ? StringRef(layout.entry->style)
                                     : StringRef("placements"));
  if (isExpertAxis(axis, plan) &&
      plan.expertParameters.contains(parameter.getFqnAttr()))
    return plan::printReason(plan.file.experts->loc, "expert_parallel");
  if (const plan::DataAxis *data = getDataAxis(axis, plan))
    return plan::printReason(
        data->loc, data->style == plan::DataAxis::FSDP ? "fsdp" : "ddp");
  if (isContextAxis(axis, plan))
    return plan::printReason(plan.file.context->loc, "context_parallel");
  return "replicated by default";
}

NamedSource explain::nameSource(const PlacementChain &chain,
                                const Program &program) {
  const PlacementSource &source = *chain.source;
  func::FuncOp function = source.function;
  switch (source.kind) {
  case PlacementSource::Argument:
    return {"argument", printArgument(function, source.index),
            getInterfaceReason(source, chain.axis, program)};
  case PlacementSource::Result:
    return {"result", "result " + std::to_string(source.index),
            getInterfaceReason(source, chain.axis, program)};
  case PlacementSource::Body:
    return {"body", printOp(source.op), "reads it in its body"};
  case PlacementSource::Attribute: {
    auto parameter = dyn_cast<ParameterOpInterface>(source.op);
    std::string by = "tp.sharding";
    if (parameter && program.plan)
      by = getParameterReason(parameter, chain.axis, *program.plan);
    return {parameter ? "parameter" : "op", printOp(source.op), by};
  }
  case PlacementSource::Op:
    break;
  }
  auto redistribute = dyn_cast<RedistributeOp>(source.op);
  std::string fqn = getFqn(source.op).str();
  if (redistribute && redistribute.getReason())
    return {"layout", fqn.empty() ? printLocation(source.op->getLoc()) : fqn,
            redistribute.getReason()->str()};
  return {"op", printOp(source.op), source.op->getName().getStringRef().str()};
}
