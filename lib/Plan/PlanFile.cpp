//===- PlanFile.cpp - the text of a parallelize plan ----------------------===//

#include "tp/Plan/PlanFile.h"
#include "YamlReader.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Plan/Pattern.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <limits>
#include <optional>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

std::string PlanValue::describe() const {
  switch (kind) {
  case Kind::Null:
    return "nothing";
  case Kind::Scalar:
    return "'" + text + "'";
  case Kind::List:
    return "a list";
  case Kind::Map:
    return "a map";
  }
  llvm_unreachable("all kinds are handled");
}

namespace {

/// Gives the fields of a plan their meaning.
class PlanReader {
public:
  explicit PlanReader(PlanFile &plan) : plan(plan) {}

  LogicalResult read(const PlanValue &root) {
    if (!root.isMap()) {
      report(root.loc,
             "a plan is a map with the keys 'mesh' and 'plan', found " +
                 root.describe());
      return failure();
    }
    const PlanValue *mesh = nullptr, *entries = nullptr, *meshDim = nullptr;
    forEachField(
        root, "plan file", [&](const PlanValue &key, const PlanValue &field) {
          if (key.text == "mesh")
            mesh = &field;
          else if (key.text == "plan")
            entries = &field;
          else if (key.text == "mesh_dim")
            meshDim = &field;
          else
            report(key.loc,
                   "unknown key '" + key.text + "'" +
                       suggestOr(key.text, {"mesh", "plan", "mesh_dim"},
                                 "; keys are mesh, mesh_dim and plan"));
        });
    if (mesh)
      readMesh(*mesh);
    else
      report(root.loc,
             "key 'mesh' is missing; write one such as mesh: {tp: 2}");
    readMeshDim(meshDim, mesh ? mesh->loc : root.loc);
    if (entries)
      readEntries(*entries);
    else
      report(root.loc, "key 'plan' is missing; it maps modules to styles");
    return success(!failed);
  }

private:
  void report(FileLineColLoc loc, const Twine &message) {
    failed = true;
    emitError(loc, message);
  }

  static std::string suggestOr(StringRef name, ArrayRef<StringRef> candidates,
                               StringRef otherwise) {
    std::string hint = suggestNearest(name, candidates);
    return hint.empty() ? otherwise.str() : hint;
  }

  /// Calls `handle` for each field, reporting keys that come twice.
  void forEachField(
      const PlanValue &map, StringRef what,
      function_ref<void(const PlanValue &, const PlanValue &)> handle) {
    llvm::StringMap<const PlanValue *> seen;
    for (size_t i = 0; i < map.getNumFields(); ++i) {
      const PlanValue &key = map.getKey(i);
      auto [first, inserted] = seen.try_emplace(key.text, &key);
      if (inserted) {
        handle(key, map.getField(i));
        continue;
      }
      failed = true;
      emitError(key.loc) << "'" << key.text << "' comes twice in this " << what;
    }
  }

  void readMesh(const PlanValue &mesh) {
    if (!mesh.isMap() || mesh.getNumFields() == 0)
      return report(mesh.loc, "mesh must name at least one dimension and its "
                              "size, such as {tp: 2}");
    bool valid = true;
    int64_t ranks = 1;
    forEachField(
        mesh, "mesh", [&](const PlanValue &key, const PlanValue &field) {
          auto isNameChar = [](char c) { return llvm::isAlnum(c) || c == '_'; };
          if (key.text.empty() || llvm::isDigit(key.text[0]) ||
              !llvm::all_of(key.text, isNameChar)) {
            valid = false;
            return report(key.loc, "mesh dimension '" + key.text +
                                       "' must be named by letters, digits and "
                                       "underscores, a letter first");
          }
          int64_t size = 0;
          if (!field.isScalar() || field.quoted ||
              StringRef(field.text).getAsInteger(10, size) || size < 1) {
            valid = false;
            return report(field.loc,
                          "mesh dimension '" + key.text +
                              "' must have an integer size of at least "
                              "1, found " +
                              field.describe());
          }
          // MPI and NCCL number ranks by an int.
          if (llvm::MulOverflow(ranks, size, ranks) ||
              ranks > std::numeric_limits<int32_t>::max()) {
            valid = false;
            ranks = 1;
            return report(field.loc, "the mesh has more than 2147483647 ranks");
          }
          plan.mesh.push_back({key.text, size});
        });
    if (!valid)
      plan.mesh.clear();
  }

  void readMeshDim(const PlanValue *meshDim, FileLineColLoc meshLoc) {
    if (plan.mesh.empty())
      return;
    if (!meshDim) {
      if (plan.mesh.size() > 1)
        report(meshLoc, "the mesh has " + Twine(plan.mesh.size()) +
                            " dimensions; say which one the plan parallelizes "
                            "over, such as mesh_dim: " +
                            plan.mesh.back().name);
      return;
    }
    SmallVector<StringRef> names;
    for (const MeshAxis &axis : plan.mesh)
      names.push_back(axis.name);
    if (!meshDim->isScalar())
      return report(meshDim->loc,
                    "mesh_dim must name a mesh dimension, found " +
                        meshDim->describe());
    auto *it = llvm::find(names, meshDim->text);
    if (it == names.end())
      return report(meshDim->loc,
                    "the mesh has no dimension '" + meshDim->text + "'" +
                        suggestOr(meshDim->text, names,
                                  "; it has " + llvm::join(names, ", ")));
    plan.axis = it - names.begin();
  }

  void readEntries(const PlanValue &entries) {
    if (!entries.isMap() && !entries.isNull())
      return report(entries.loc, "plan must map module patterns to styles, "
                                 "found " +
                                     entries.describe());
    if (entries.items.empty())
      emitWarning(entries.loc, "the plan is empty: nothing is parallelized");
    forEachField(entries, "plan",
                 [&](const PlanValue &key, const PlanValue &field) {
                   readEntry(key, field);
                 });
  }

  void readEntry(const PlanValue &pattern, const PlanValue &value) {
    PlanEntry entry{pattern.text, pattern.loc, "", value.loc, {}};
    if (value.isScalar()) {
      if (readStyleName(value, entry))
        plan.entries.push_back(std::move(entry));
      return;
    }
    if (!value.isMap())
      return report(value.loc,
                    "'" + pattern.text +
                        "' must have a style, or a map of a style and "
                        "its arguments, found " +
                        value.describe());
    bool hasStyle = false, valid = true;
    forEachField(value, "entry",
                 [&](const PlanValue &key, const PlanValue &field) {
                   if (key.text != "style") {
                     entry.arguments.push_back({key.text, key.loc, field});
                     return;
                   }
                   hasStyle = true;
                   if (!field.isScalar()) {
                     valid = false;
                     return report(field.loc, "style must be a name, found " +
                                                  field.describe());
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
      plan.entries.push_back(std::move(entry));
  }

  /// Takes `Name` and, as Python has it, `Name()`.
  bool readStyleName(const PlanValue &value, PlanEntry &entry) {
    StringRef name = StringRef(value.text).trim();
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
  bool failed = false;
};

} // namespace

LogicalResult plan::parsePlan(StringRef text, StringRef path,
                              MLIRContext *context, PlanFile &plan) {
  std::optional<PlanValue> root = readYaml(text, path, context);
  if (!root)
    return failure();
  return PlanReader(plan).read(*root);
}

LogicalResult plan::readPlan(StringRef path, MLIRContext *context,
                             PlanFile &plan) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (std::error_code error = buffer.getError())
    return emitError(FileLineColLoc::get(context, path, 1, 1))
           << "can't read the plan: " << error.message();
  return parsePlan((*buffer)->getBuffer(), path, context, plan);
}
