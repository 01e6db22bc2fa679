//===- PlanFile.cpp - The text of a parallelize plan ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Plan/PlanFile.h"
#include "MeshReader.h"
#include "PlanKeys.h"
#include "StagesReader.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Support/FieldReader.h"
#include "tp/Support/InputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

/// Interprets the fields of a plan.
class PlanReader : FieldReader {
public:
  explicit PlanReader(PlanFile &plan) : plan(plan) {}

  LogicalResult read(const YamlValue &root) {
    if (!root.isMap()) {
      reportValue(root, "a plan is a map with the keys 'mesh' and 'plan'");
      return failure();
    }
    Fields fields = readFields(root, "plan file", getPlanKeys());
    if (fields["plan"] && fields["plan"]->isNull() && failed)
      report(fields.getKeyLoc("plan"),
             "'plan' has nothing below it; indent the lines that belong to it");
    MeshReader mesh(plan);
    mesh.read(fields["mesh"], fields["world_size"], root.loc);
    failed |= mesh.hasFailed();
    meshLoc = fields["mesh"] ? fields["mesh"]->loc : root.loc;

    if (const YamlValue *data = fields["data_parallel"])
      readDataParallel(*data);
    if (const YamlValue *experts = fields["expert_parallel"])
      readExpertParallel(*experts);
    if (const YamlValue *pipeline = fields["pipeline"])
      readPipeline(*pipeline);
    if (const YamlValue *batch = fields["batch"])
      readBatch(*batch, fields.getKeyLoc("batch"));
    if (const YamlValue *context = fields["context_parallel"])
      readContextParallel(*context);
    PlanGroup defaults(root.loc);
    readOptions(fields, defaults);
    const YamlValue *entries = fields["plan"], *list = fields["parallelize"];
    if (entries && list)
      report(
          fields.getKeyLoc("parallelize"),
          "a plan has either 'plan' or 'parallelize', and this one has both");
    else if (entries)
      readGroup(fields, *entries, defaults, fields.getKeyLoc("plan"),
                /*isOnly=*/true);
    else if (list)
      readGroups(fields, *list, defaults);
    else if (!fields["pipeline"] && !fields["context_parallel"] &&
             !fields["expert_parallel"] &&
             (!fields["data_parallel"] ||
              fields["data_parallel"]->items.empty()))
      report(root.loc, "key 'plan' is missing; it maps modules to styles");
    return success(!failed);
  }

private:
  void readDataParallel(const YamlValue &value) {
    if (!value.isMap())
      return reportValue(
          value, "data_parallel must map mesh dimensions to ddp or fsdp");
    forEachAxis(value,
                [&](unsigned axis, FileLineColLoc loc, const YamlValue &field) {
                  DataAxis data{axis, DataAxis::DDP, loc};
                  readDataStyle(field, data);
                  addDataAxis(data);
                });
  }

  /// The key by which mesh dimension `axis` splits the batch.
  std::string getBatchKey(unsigned axis) const {
    return plan.experts && plan.experts->axis == axis ? "expert_parallel"
                                                      : "data_parallel";
  }

  void addDataAxis(const DataAxis &data) {
    plan.data.push_back(data);
    llvm::sort(plan.data, [](const DataAxis &a, const DataAxis &b) {
      return a.axis < b.axis;
    });
  }

  void readExpertParallel(const YamlValue &value) {
    if (!value.isMap() || value.items.empty())
      return reportValue(value, "expert_parallel must map a mesh dimension to "
                                "all_to_all, such as {ep: all_to_all}");
    forEachAxis(
        value, [&](unsigned axis, FileLineColLoc loc, const YamlValue &field) {
          if (plan.experts)
            return report(loc, "expert_parallel takes one mesh dimension, and "
                               "this is the second after '" +
                                   plan.mesh[plan.experts->axis].name + "'");
          if (field.text != "all_to_all" || !field.isScalar())
            return reportValue(field, "the method of expert_parallel "
                                      "must be all_to_all");
          plan.experts = ExpertAxis{axis, loc};
          // The batch is split over the mesh dimension, too.
          if (llvm::none_of(plan.data, [&](const DataAxis &data) {
                return data.axis == axis;
              }))
            addDataAxis({axis, DataAxis::DDP, loc});
        });
  }

  /// Calls read(mesh dimension, location of its name, field) for each field of
  /// a map of mesh dimensions.
  template <typename Read>
  void forEachAxis(const YamlValue &map, Read read) {
    SmallVector<StringRef> names;
    for (const MeshAxis &axis : plan.mesh)
      names.push_back(axis.name);
    if (names.empty()) // the mesh is invalid
      return;
    forEachField(map, "map", [&](const YamlValue &key, const YamlValue &field) {
      auto *it = llvm::find(names, key.text);
      if (it == names.end())
        return report(key.loc,
                      "the mesh has no dimension '" + key.text + "'" +
                          suggestOr(key.text, names,
                                    "; it has " + llvm::join(names, ", ")));
      read(static_cast<unsigned>(it - names.begin()), key.loc, field);
    });
  }

  void readContextParallel(const YamlValue &value) {
    if (!value.isMap() || value.items.empty())
      return reportValue(value, "context_parallel must map a mesh dimension to "
                                "a method or to a map with the keys 'method' "
                                "and 'inputs'");
    forEachAxis(value, [&](unsigned axis, FileLineColLoc loc,
                           const YamlValue &field) {
      StringRef name = plan.mesh[axis].name;
      if (plan.context)
        return report(loc, "context_parallel splits the sequence "
                           "over one mesh dimension, and '" +
                               plan.mesh[plan.context->axis].name +
                               "' is given, too");
      if (llvm::any_of(plan.data,
                       [&](const DataAxis &data) { return data.axis == axis; }))
        return report(loc, "'" + name + "' is in " + getBatchKey(axis) +
                               ", so "
                               "context_parallel can't split over "
                               "it, too");
      if (plan.pipeline && plan.pipeline->axis == axis)
        return report(loc, "'" + name +
                               "' has the stages of a pipeline, so "
                               "context_parallel can't split over "
                               "it, too");
      plan.context.emplace(
          ContextAxis{axis, loc, ContextMethod::Cheapest, loc});
      readContext(field, *plan.context);
    });
  }

  void readContext(const YamlValue &value, ContextAxis &context) {
    if (!value.isMap())
      return readContextMethod(value, context);
    Fields fields = readFields(value, "map", getContextKeys());
    if (const YamlValue *method = fields["method"])
      readContextMethod(*method, context);
    if (const YamlValue *inputs = fields["inputs"]) {
      if (!inputs->isMap() || inputs->items.empty())
        return reportValue(*inputs, "inputs must map inputs to the dimension "
                                    "that is the sequence");
      readInputs(*inputs, "sequence", context.inputs);
    }
  }

  void readContextMethod(const YamlValue &value, ContextAxis &context) {
    context.methodLoc = value.loc;
    SmallVector<StringRef> names;
    for (const NamedValue<ContextMethod> &method : kContextMethods)
      names.push_back(method.name);
    if (auto method = findNamed(kContextMethods, value.text))
      context.method = *method;
    else
      report(value.loc, "the method of context_parallel must be ring, "
                        "all_gather, all_to_all or cheapest, found " +
                            value.describe() +
                            suggestNearest(value.text, names));
  }

  /// Reads a map of inputs to their dimension `what`.
  void readInputs(const YamlValue &map, StringRef what,
                  std::vector<BatchInput> &inputs) {
    forEachField(map, "map", [&](const YamlValue &key, const YamlValue &field) {
      if (std::optional<int64_t> dim = field.getInteger())
        inputs.push_back({key.text, key.loc, *dim, field.loc});
      else
        reportValue(field, "the " + what + " of '" + key.text +
                               "' must be a dimension");
    });
  }

  void readPipeline(const YamlValue &value) {
    if (!value.isMap() || value.getNumFields() == 0)
      return reportValue(value, "pipeline must map a mesh dimension to its "
                                "stages, such as {pp: {split: [layers.2]}}");
    forEachAxis(
        value, [&](unsigned axis, FileLineColLoc loc, const YamlValue &field) {
          if (plan.pipeline)
            return report(loc, "a plan has one pipeline, and '" +
                                   plan.mesh[plan.pipeline->axis].name +
                                   "' has one already");
          for (const DataAxis &data : plan.data)
            if (data.axis == axis)
              return report(loc, "'" + plan.mesh[axis].name + "' is in " +
                                     getBatchKey(axis) +
                                     ", so it can't have the stages of a "
                                     "pipeline, too");
          plan.pipeline = PipelineAxis{axis, loc};
          StagesReader stages(*plan.pipeline, plan.mesh[axis].name,
                              plan.mesh[axis].size);
          stages.read(field);
          failed |= stages.hasFailed();
        });
  }

  void readBatch(const YamlValue &value, FileLineColLoc loc) {
    if (plan.data.empty() && !failed)
      return report(loc, "batch names the dimension that data_parallel or "
                         "expert_parallel splits, and the plan has neither; "
                         "add one of them, or remove batch");
    if (!value.isMap() || value.items.empty())
      return reportValue(value,
                         "batch must map inputs to the dimension that is "
                         "the batch");
    readInputs(value, "batch", plan.batch);
  }

  void readDataStyle(const YamlValue &value, DataAxis &axis) {
    if (!value.isMap())
      return readDataName(value, axis);
    Fields fields = readFields(value, "map", getDataKeys());
    if (!fields["style"])
      return report(value.loc, "key 'style' is missing: ddp or fsdp");
    readDataName(*fields["style"], axis);
    for (const KeySpec &key : getDataKeys())
      if (fields[key.name] && !key.isFor(getUsualName(kDataStyles, axis.style)))
        report(fields[key.name]->loc,
               key.name + " is for " + llvm::join(key.onlyFor, " and "));
    if (const YamlValue *reshard = fields["reshard_after_forward"]) {
      axis.reshardAfterForward = reshard->getBool();
      if (!axis.reshardAfterForward)
        reportValue(*reshard, "reshard_after_forward must be true or false");
    }
    if (const YamlValue *modules = fields["modules"])
      readModules(*modules, axis.modules.emplace());
  }

  void readDataName(const YamlValue &value, DataAxis &axis) {
    if (auto style = findNamed(kDataStyles, value.text))
      axis.style = *style;
    else
      reportValue(value, "the style of data_parallel must be ddp or fsdp");
  }

  void readModules(const YamlValue &value,
                   std::vector<ModulePattern> &patterns) {
    if (!value.isList())
      return reportValue(value, "modules must be a list of patterns");
    for (const YamlValue &item : value.items)
      if (item.isScalar())
        patterns.push_back({item.text, item.loc});
      else
        reportValue(item, "a pattern of modules is expected");
  }

  void readGroups(Fields &root, const YamlValue &list,
                  const PlanGroup &defaults) {
    for (StringRef key : {"mesh_dim", "tp_mesh_dim"})
      if (root[key])
        report(root.getKeyLoc(key),
               "'" + key + "' belongs in each item of 'parallelize'");
    if (!list.isList() && !list.isMap())
      return reportValue(
          list, "parallelize must be a list of maps, each with the keys "
                "'mesh_dim' and 'plan'");
    if (list.items.empty())
      emitWarning(list.loc, "the plan is empty: nothing is parallelized");
    ArrayRef<YamlValue> items = list.isList() ? ArrayRef(list.items) : list;
    for (const YamlValue &item : items) {
      if (!item.isMap()) {
        reportValue(item, "an item of parallelize is a map with the keys "
                          "'mesh_dim' and 'plan'");
        continue;
      }
      Fields fields = readFields(item, "item", getGroupKeys());
      PlanGroup group = defaults;
      readOptions(fields, group);
      if (fields["plan"])
        readGroup(fields, *fields["plan"], std::move(group),
                  fields.getKeyLoc("plan"), /*isOnly=*/false);
      else
        report(item.loc, "key 'plan' is missing; it maps modules to styles");
    }
  }

  void readOptions(Fields &fields, PlanGroup &group) {
    if (const YamlValue *match = fields["match"]) {
      if (auto mode = findNamed(kMatchModes, match->text))
        group.match = *mode;
      else
        reportValue(*match, "match must be fnmatch, hf or regex");
    }
    if (const YamlValue *unmatched = fields["on_unmatched"]) {
      group.allowUnmatched = findNamed(kUnmatchedModes, unmatched->text);
      if (!group.allowUnmatched)
        reportValue(*unmatched, "on_unmatched must be error or warn");
    }
    if (const YamlValue *loss = fields["loss_parallel"]) {
      group.lossLoc = fields.getKeyLoc("loss_parallel");
      if (std::optional<bool> value = loss->getBool())
        group.lossParallel = *value;
      else
        reportValue(*loss, "loss_parallel must be true or false");
    }
  }

  /// `isOnly`: the file has no other group.
  void readGroup(Fields &fields, const YamlValue &entries, PlanGroup group,
                 FileLineColLoc loc, bool isOnly) {
    group.loc = loc;
    group.axes = readAxes(fields, isOnly);
    for (const DataAxis &data : plan.data)
      if (!failed && llvm::is_contained(group.axes, data.axis))
        report(data.loc, "'" + plan.mesh[data.axis].name + "' is in " +
                             getBatchKey(data.axis) +
                             ", so the plan can't split over it, too");
    if (!failed && plan.pipeline &&
        llvm::is_contained(group.axes, plan.pipeline->axis))
      report(plan.pipeline->loc,
             "'" + plan.mesh[plan.pipeline->axis].name +
                 "' has the stages of a pipeline, so the plan can't split over "
                 "it, too");
    if (!failed && plan.context &&
        llvm::is_contained(group.axes, plan.context->axis))
      report(plan.context->loc,
             "'" + plan.mesh[plan.context->axis].name +
                 "' is in context_parallel, so the plan can't split over it, "
                 "too");
    this->group = &group;
    if (isSingleStyle(entries)) {
      YamlValue root(entries.loc);
      readEntry(root, entries);
    } else if (!entries.isMap() && !entries.isNull()) {
      reportValue(entries, "plan must map module patterns to styles, or be one "
                           "style for the root module");
    } else {
      if (entries.items.empty() && !group.lossParallel)
        emitWarning(entries.loc, "the plan is empty: nothing is parallelized");
      forEachField(entries, "plan",
                   [&](const YamlValue &key, const YamlValue &field) {
                     readEntry(key, field);
                   });
    }
    plan.groups.push_back(std::move(group));
  }

  /// Whether `value` is one style instead of a map of patterns to styles.
  static bool isSingleStyle(const YamlValue &value) {
    if (!value.isMap())
      return value.isScalar();
    for (size_t i = 0; i < value.getNumFields(); ++i)
      if (value.getKey(i).text == "style" && value.getField(i).isScalar())
        return true;
    return false;
  }

  /// The mesh dimensions that `mesh_dim` or `tp_mesh_dim` name.
  AxisSet readAxes(Fields &fields, bool isOnly) {
    const YamlValue *byName = fields["mesh_dim"];
    const YamlValue *byIndex = fields["tp_mesh_dim"];
    if (plan.mesh.empty())
      return {};
    if (byName && byIndex) {
      report(fields.getKeyLoc("tp_mesh_dim"),
             "'mesh_dim' and 'tp_mesh_dim' mean the same; write only one");
      return {0};
    }
    if (byName)
      return readNamedAxes(*byName);
    if (byIndex) {
      std::optional<int64_t> index = byIndex->getInteger();
      int64_t count = plan.mesh.size();
      if (index && *index >= 0 && *index < count)
        return {static_cast<unsigned>(*index)};
      reportValue(*byIndex,
                  "tp_mesh_dim must be the index of a mesh dimension, "
                  "0 to " +
                      Twine(count - 1));
      return {0};
    }
    // The mesh dimensions that split neither the batch nor the sequence, and have
    // no stages, are for tensors.
    AxisSet others;
    for (unsigned axis = 0; axis < plan.mesh.size(); ++axis)
      if (!(plan.context && plan.context->axis == axis) &&
          !(plan.pipeline && plan.pipeline->axis == axis) &&
          llvm::none_of(plan.data, [&](const DataAxis &data) {
            return data.axis == axis;
          }))
        others.push_back(axis);
    bool hasOwn = !plan.data.empty() || plan.context || plan.pipeline;
    if (hasOwn && others.size() == 1)
      return others;
    if (plan.mesh.size() == 1)
      return {0};
    if (isOnly && !hasOwn)
      emitWarning(
          meshLoc,
          "the plan splits over '" + plan.mesh.front().name +
              "', dimension 0 of the mesh, as PyTorch 2.0 does; to split over "
              "another dimension, write for example mesh_dim: " +
              plan.mesh.back().name);
    else
      report(meshLoc, "the mesh has " + Twine(plan.mesh.size()) +
                          " dimensions; say which one the plan parallelizes "
                          "over, such as mesh_dim: " +
                          plan.mesh.back().name);
    return {0};
  }

  AxisSet readNamedAxes(const YamlValue &value) {
    if (!value.isScalar() && (!value.isList() || value.items.empty())) {
      reportValue(value, "mesh_dim must name a mesh dimension, or several in a "
                         "list");
      return {0};
    }
    SmallVector<StringRef> names;
    for (const MeshAxis &axis : plan.mesh)
      names.push_back(axis.name);
    AxisSet axes;
    for (const YamlValue &item :
         value.isList() ? ArrayRef(value.items) : ArrayRef(value)) {
      auto *it = item.isScalar() ? llvm::find(names, item.text) : names.end();
      if (it == names.end()) {
        report(item.loc,
               "the mesh has no dimension " +
                   (item.isScalar() ? "'" + item.text + "'" : item.describe()) +
                   suggestOr(item.text, names,
                             "; it has " + llvm::join(names, ", ")));
        continue;
      }
      unsigned axis = it - names.begin();
      if (llvm::is_contained(axes, axis))
        report(item.loc,
               "mesh_dim names mesh dimension '" + item.text + "' twice");
      else if (!axes.empty() && axes.back() > axis)
        report(item.loc, "mesh_dim must name mesh dimensions in the order of "
                         "the mesh, and '" +
                             item.text + "' comes before '" +
                             plan.mesh[axes.back()].name + "' there");
      else
        axes.push_back(axis);
    }
    return axes.empty() ? AxisSet{0} : axes;
  }

  void readEntry(const YamlValue &pattern, const YamlValue &value) {
    PlanEntry entry{pattern.text, pattern.loc, "", value.loc, {}};
    if (value.isList() || isPlacement(value)) {
      if (readPlacements(value, entry))
        group->entries.push_back(std::move(entry));
      return;
    }
    if (value.isScalar()) {
      if (readStyleName(value, entry))
        group->entries.push_back(std::move(entry));
      return;
    }
    if (!value.isMap())
      return reportValue(value,
                         "'" + pattern.text +
                             "' must have a style, a map of a style and its "
                             "arguments, or a list of placements");
    bool hasStyle = false, valid = true;
    forEachField(value, "entry",
                 [&](const YamlValue &key, const YamlValue &field) {
                   if (key.text != "style") {
                     entry.arguments.push_back({key.text, key.loc, field});
                     return;
                   }
                   hasStyle = true;
                   if (!field.isScalar()) {
                     valid = false;
                     return reportValue(field, "style must be a name");
                   }
                   valid &= readStyleName(field, entry);
                 });
    if (!hasStyle) {
      std::string hint;
      for (const PlanArgument &argument : entry.arguments)
        if (findNearest(argument.name, {"style"}) == "style")
          hint = "; did you mean 'style' where '" + argument.name + "' stands?";
      return report(value.loc,
                    "'" + pattern.text + "' has no key 'style'" + hint);
    }
    if (valid)
      group->entries.push_back(std::move(entry));
  }

  static bool isPlacement(const YamlValue &value) {
    std::string error;
    return value.isScalar() && parsePlacement(value.text, error).has_value();
  }

  /// Reads the placements of a parameter.
  bool readPlacements(const YamlValue &value, PlanEntry &entry) {
    bool valid = true;
    for (const YamlValue &item :
         value.isList() ? ArrayRef(value.items) : ArrayRef(value)) {
      std::string error =
          "a placement is expected here, found " + item.describe();
      std::optional<Placement> placement;
      if (item.isScalar())
        placement = parsePlacement(item.text, error);
      if (placement) {
        entry.direct.push_back(*placement);
        continue;
      }
      valid = false;
      report(item.loc, "'" + entry.pattern + "': " + error);
    }
    if (!valid)
      return false;
    size_t count = entry.direct.size(), axes = group->axes.size();
    if (count && (count == 1 || count == axes || plan.mesh.empty()))
      return true;
    report(value.loc, "'" + entry.pattern + "' has " + Twine(count) +
                          " placements, but the plan is over " + Twine(axes) +
                          (axes == 1 ? " mesh dimension" : " mesh dimensions"));
    return false;
  }

  /// Accepts `Name` and, as in Python, `Name()`.
  bool readStyleName(const YamlValue &value, PlanEntry &entry) {
    StringRef name = StringRef(value.text).trim();
    if (name.contains(':')) {
      report(value.loc, "'" + name + "' needs a space after ':'");
      return false;
    }
    name.consume_back("()");
    if (name.contains('(')) {
      StringRef bare = name.take_until([](char c) { return c == '('; });
      report(value.loc, "arguments of a style are written as a map, {style: " +
                            bare + ", argument: value}");
      return false;
    }
    entry.style = name.str();
    entry.styleLoc = value.loc;
    return true;
  }

  PlanFile &plan;
  /// The group that is being read.
  PlanGroup *group = nullptr;
  FileLineColLoc meshLoc = {};
};

} // namespace

LogicalResult plan::parsePlan(StringRef text, StringRef path,
                              MLIRContext *context, PlanFile &plan) {
  std::optional<YamlValue> root = readYaml(text, path, "a plan", context);
  if (!root)
    return failure();
  return PlanReader(plan).read(*root);
}

LogicalResult plan::readPlan(StringRef path, MLIRContext *context,
                             PlanFile &plan) {
  auto buffer = readInput(path);
  if (!buffer)
    return emitInputError(context, path, "plan", buffer.takeError());
  return parsePlan((*buffer)->getBuffer(), path, context, plan);
}
