//===- PlanAsText.cpp - A checked plan as text and as JSON ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Advice/Lint/PlacementFlow.h"
#include "PlanDescription.h"
#include "tp/Advice/Print/PlanPrinter.h"
#include "tp/Plan/Finding.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ScopedPrinter.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// The style's name, or the placements of an entry without one.
static std::string getStyleName(const PlanEntry &entry) {
  return entry.direct.empty() ? entry.style : "placements";
}

static std::vector<std::string> getSplit(const PipelineAxis &pipeline) {
  std::vector<std::string> modules;
  for (const ModulePattern &module : pipeline.split)
    modules.push_back(module.text);
  return modules;
}

void plan::printPipeline(const CheckedPlan &plan, raw_ostream &os) {
  if (!plan.file.pipeline)
    return;
  const PipelineAxis &pipeline = *plan.file.pipeline;
  os << "pipeline: {" << plan.file.mesh[pipeline.axis].name << ": {split: ["
     << llvm::join(getSplit(pipeline), ", ")
     << "], schedule: " << stringifyPipelineSchedule(pipeline.schedule)
     << ", microbatches: " << pipeline.microbatches << "}}\n";
  double total = 0;
  for (const StageLoad &load : plan.stageLoads)
    total += load.seconds;
  for (auto [stage, load] : llvm::enumerate(plan.stageLoads))
    os << "  stage " << stage << ": "
       << std::lround(total > 0 ? 100 * load.seconds / total : 0)
       << "% of the forward pass's time, " << load.bytes
       << " bytes of parameters per rank\n";
}

void plan::printText(const CheckedPlan &plan, ModuleOp model, raw_ostream &os) {
  os << "mesh";
  for (const MeshAxis &axis : plan.file.mesh)
    os << " " << axis.name << "=" << axis.size;
  os << "\n";
  printPipeline(plan, os);
  auto printTensor = [&](StringRef what, const TensorDescription &tensor) {
    if (llvm::none_of(tensor.placements,
                      [](const Layout &layout) { return layout.has_value(); }))
      return;
    os << llvm::formatv("  {0,-24} {1,-16} ", what, printType(tensor.type));
    if (tensor.declared != tensor.placements &&
        llvm::any_of(tensor.declared,
                     [](const Layout &layout) { return layout.has_value(); }))
      os << printList(tensor.declared) << " -> ";
    os << printList(tensor.placements) << "\n";
  };
  for (const ModuleDescription &module : describe(plan, model)) {
    os << (module.fqn.empty() ? "<root>" : module.fqn) << ": "
       << module.className;
    for (const StyleDescription &style : module.styles)
      os << ", " << getStyleName(*style.entry) << " over "
         << plan.groups[style.group].name << " ("
         << printPlace(style.entry->loc) << ")";
    os << "\n";
    for (const TensorDescription &input : module.inputs)
      printTensor(("input '" + input.name + "'").str(), input);
    for (const ParameterDescription &parameter : module.parameters) {
      StringRef name = parameter.fqn;
      if (name.consume_front(module.fqn))
        name.consume_front(".");
      os << llvm::formatv("  {0,-24} {1,-16} {2}, {3} of {4} bytes per rank",
                          name, printType(parameter.type),
                          printList(parameter.placements),
                          parameter.bytesPerRank, parameter.bytes);
      os << (parameter.entry ? "\n" : ", no entry\n");
    }
    for (auto [index, output] : llvm::enumerate(module.outputs))
      printTensor("output " + std::to_string(index), output);
  }
  for (const LossLayout &loss : plan.losses)
    os << "loss_parallel over " << plan.groups[loss.group].name << ": logits "
       << loss.logits.placement.str() << "\n";
}

static llvm::json::Array toJson(ArrayRef<Layout> placements) {
  llvm::json::Array array;
  for (const Layout &layout : placements)
    array.push_back(layout ? llvm::json::Value(layout->str())
                           : llvm::json::Value(nullptr));
  return array;
}

void plan::printJson(const CheckedPlan &plan, ModuleOp model, raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  auto printShape = [&](RankedTensorType type) {
    json.attribute("shape", llvm::json::Array(type.getShape()));
    json.attribute("dtype", llvm::to_string(type.getElementType()));
  };
  auto printTensors = [&](StringRef key, ArrayRef<TensorDescription> tensors) {
    json.attributeArray(key, [&] {
      for (const TensorDescription &tensor : tensors)
        json.object([&] {
          if (key == "inputs")
            json.attribute("name", tensor.name);
          printShape(tensor.type);
          json.attribute("declared", toJson(tensor.declared));
          json.attribute("placements", toJson(tensor.placements));
        });
    });
  };
  json.object([&] {
    json.attributeObject("mesh", [&] {
      for (const MeshAxis &axis : plan.file.mesh)
        json.attribute(axis.name, axis.size);
    });
    if (!plan.file.devices.empty())
      json.attribute("devices", llvm::json::Array(plan.file.devices));
    if (const auto &pipeline = plan.file.pipeline)
      json.attributeObject("pipeline", [&] {
        json.attribute("mesh_dim", plan.file.mesh[pipeline->axis].name);
        json.attribute("split", llvm::json::Array(getSplit(*pipeline)));
        json.attribute("stages_per_rank", pipeline->stagesPerRank);
        json.attribute("schedule",
                       stringifyPipelineSchedule(pipeline->schedule));
        json.attribute("microbatches", pipeline->microbatches);
      });
    json.attributeArray("modules", [&] {
      for (const ModuleDescription &module : describe(plan, model))
        json.object([&] {
          json.attribute("fqn", module.fqn);
          json.attribute("class", module.className);
          json.attributeArray("styles", [&] {
            for (const StyleDescription &style : module.styles)
              json.object([&] {
                json.attribute("style", getStyleName(*style.entry));
                json.attribute("mesh_dim", plan.groups[style.group].name);
                json.attribute("pattern", style.entry->pattern);
                json.attribute("place", printPlace(style.entry->loc));
              });
          });
          printTensors("inputs", module.inputs);
          printTensors("outputs", module.outputs);
          json.attributeArray("parameters", [&] {
            for (const ParameterDescription &parameter : module.parameters)
              json.object([&] {
                json.attribute("fqn", parameter.fqn);
                printShape(parameter.type);
                llvm::json::Array placements;
                for (const Placement &placement : parameter.placements)
                  placements.push_back(placement.str());
                json.attribute("placements", std::move(placements));
                json.attribute("bytes", parameter.bytes);
                json.attribute("bytes_per_rank", parameter.bytesPerRank);
                json.attribute("place", parameter.entry
                                            ? llvm::json::Value(printPlace(
                                                  parameter.entry->loc))
                                            : llvm::json::Value(nullptr));
              });
          });
        });
    });
    json.attribute("loss_parallel", !plan.losses.empty());
  });
  os << "\n";
}
