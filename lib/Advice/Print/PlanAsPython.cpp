//===- PlanAsPython.cpp - A checked plan as a PyTorch program -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Plan/Styles/WeightedModule.h"
#include "tp/Advice/Print/PlanPrinter.h"
#include "tp/Support/Quote.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// `(1, 2)`, or `(1,)` for a tuple of one.
static std::string joinTuple(ArrayRef<std::string> texts) {
  return "(" + llvm::join(texts, ", ") + (texts.size() == 1 ? ",)" : ")");
}

static std::string printArgument(const YamlValue &value) {
  switch (value.kind) {
  case YamlValue::Kind::Null:
    return "None";
  case YamlValue::Kind::Scalar: {
    if (auto boolean = value.getBool())
      return *boolean ? "True" : "False";
    if (auto integer = value.getInteger())
      return std::to_string(*integer);
    std::string error;
    if (auto placement = parsePlacement(value.text, error))
      return printPython(*placement);
    return quote(value.text);
  }
  case YamlValue::Kind::List:
    return joinTuple(llvm::map_to_vector(value.items, printArgument));
  case YamlValue::Kind::Map: {
    SmallVector<std::string> fields;
    for (size_t i = 0; i < value.getNumFields(); ++i)
      fields.push_back(quote(value.getKey(i).text) + ": " +
                       printArgument(value.getField(i)));
    return "{" + llvm::join(fields, ", ") + "}";
  }
  }
  llvm_unreachable("all kinds are handled");
}

static std::string printCall(const PlanEntry &entry) {
  SmallVector<std::string> arguments;
  for (const PlanArgument &argument : entry.arguments)
    arguments.push_back(argument.name + "=" + printArgument(argument.value));
  return entry.style + "(" + llvm::join(arguments, ", ") + ")";
}

namespace {

/// Prints the entries of the `parallelize_plan` dicts.
class ItemPrinter {
public:
  ItemPrinter(const CheckedPlan &plan, raw_ostream &os) : plan(plan), os(os) {}

  void print(const PlanEntry &entry, MatchMode match) {
    // The styles by module; a module may be called several times.
    llvm::MapVector<StringRef, std::string> calls;
    for (const ModuleLayouts &layouts : plan.modules)
      if (layouts.entry == &entry)
        calls[ModuleOpInterface(layouts.module).getFqn()] =
            layouts.python ? *layouts.python : printCall(entry);
    if (!entry.direct.empty())
      return printDirect(entry);
    auto isEmpty = [](const auto &call) { return call.second.empty(); };
    if (llvm::all_of(calls, isEmpty)) {
      os << "    # " << quote(entry.pattern) << ": PyTorch has no "
         << entry.style << "\n";
      return;
    }
    bool same = llvm::all_equal(llvm::make_second_range(calls));
    if (same && match == MatchMode::Fnmatch) {
      printItem(entry.pattern, calls.front().second);
      return;
    }
    for (auto &[fqn, call] : calls)
      if (!call.empty())
        printItem(fqn, call);
  }

private:
  void printItem(StringRef key, StringRef call) {
    os << "    " << quote(key) << ": " << call << ",\n";
  }

  void printDirect(const PlanEntry &entry) {
    SmallVector<std::string> placements;
    for (const Placement &placement : entry.direct)
      placements.push_back(printPython(placement));
    os << "    # " << quote(entry.pattern) << ": distribute_tensor(…, ["
       << llvm::join(placements, ", ") << "])\n";
  }

  const CheckedPlan &plan;
  raw_ostream &os;
};

} // namespace

/// The mesh's ranks as nested lists, from dimension `depth` on.
static std::string printDevices(const PlanFile &file, size_t depth,
                                size_t &next) {
  if (depth == file.mesh.size())
    return std::to_string(file.devices[next++]);
  SmallVector<std::string> items;
  for (int64_t i = 0; i < file.mesh[depth].size; ++i)
    items.push_back(printDevices(file, depth + 1, next));
  return "[" + llvm::join(items, ", ") + "]";
}

void plan::printPython(const CheckedPlan &plan, ModuleOp model,
                       raw_ostream &os) {
  os << "from torch.distributed.device_mesh import DeviceMesh, "
        "init_device_mesh\n"
        "from torch.distributed.tensor import Partial, Replicate, Shard\n"
        "from torch.distributed.tensor.parallel import *\n\n";
  const PlanFile &file = plan.file;
  std::string names = joinTuple(llvm::map_to_vector(
      file.mesh, [](const MeshAxis &axis) { return quote(axis.name); }));
  if (file.devices.empty()) {
    std::string sizes =
        joinTuple(llvm::map_to_vector(file.mesh, [](const MeshAxis &axis) {
          return std::to_string(axis.size);
        }));
    os << "mesh = init_device_mesh(\"cuda\", " << sizes
       << ", mesh_dim_names=" << names << ")\n";
  } else {
    size_t next = 0;
    os << "mesh = DeviceMesh(\"cuda\", " << printDevices(file, 0, next)
       << ", mesh_dim_names=" << names << ")\n";
  }
  if (const auto &pipeline = file.pipeline) {
    SmallVector<std::string> begins;
    for (const ModulePattern &module : pipeline->split)
      begins.push_back(quote(module.text));
    os << "# torch.distributed.pipelining over "
       << quote(file.mesh[pipeline->axis].name) << ": SplitPoint.BEGINNING at "
       << llvm::join(begins, ", ") << "; Schedule"
       << stringifyPipelineSchedule(pipeline->schedule)
       << ", n_microbatches=" << pipeline->microbatches << "\n";
  }
  ItemPrinter printer(plan, os);
  for (auto [group, mesh] : llvm::zip(file.groups, plan.groups)) {
    SmallVector<std::string> axes;
    for (unsigned axis : mesh.axes)
      axes.push_back(quote(file.mesh[axis].name));
    os << "parallelize_module(model, mesh[" << llvm::join(axes, ", ") << "]"
       << (axes.size() > 1 ? "._flatten()" : "") << ", {\n";
    for (const PlanEntry &entry : group.entries)
      printer.print(entry, group.match);
    os << "})\n";
    if (group.lossParallel)
      os << "# the loss is computed under loss_parallel()\n";
  }
}
