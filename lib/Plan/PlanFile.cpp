//===- PlanFile.cpp - the text of a parallelize plan ----------------------===//

#include "tp/Plan/PlanFile.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Plan/Pattern.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"
#include <limits>
#include <optional>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;
namespace yaml = llvm::yaml;

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

/// Reads YAML into PlanValues. Of YAML it takes what JSON has, in either
/// spelling: no anchors, aliases or tags, one document.
class YamlReader {
public:
  YamlReader(StringRef text, StringRef path, MLIRContext *context)
      : path(StringAttr::get(context, path)), stream(text, sources, false) {
    sources.setDiagHandler(
        [](const llvm::SMDiagnostic &diagnostic, void *reader) {
          static_cast<YamlReader *>(reader)->reportSyntax(diagnostic);
        },
        this);
  }

  /// The document; nothing when the file is malformed, which was reported.
  std::optional<PlanValue> read() {
    auto document = stream.begin();
    std::optional<PlanValue> value;
    if (document != stream.end())
      if (yaml::Node *node = document->getRoot())
        value = convert(*node, getLocation(1, 1), 0);
    if (!failed && !stream.failed() && value && ++document != stream.end())
      if (yaml::Node *node = document->getRoot())
        if (!isa<yaml::NullNode>(node))
          report(getLocation(node->getSourceRange()),
                 "a plan is one document, but another one begins here");
    if (failed || stream.failed())
      return std::nullopt;
    return value ? value : PlanValue(getLocation(1, 1));
  }

private:
  FileLineColLoc getLocation(unsigned line, unsigned column) {
    return FileLineColLoc::get(path, line, column);
  }
  FileLineColLoc getLocation(SMRange range) {
    auto [line, column] = sources.getLineAndColumn(range.Start);
    return getLocation(line, column);
  }

  std::nullopt_t report(FileLineColLoc loc, const Twine &message) {
    failed = true;
    emitError(loc, message);
    return std::nullopt;
  }

  /// LLVM's messages are sentences; ours aren't.
  void reportSyntax(const llvm::SMDiagnostic &diagnostic) {
    // What follows the first syntax error are its consequences.
    if (failed)
      return;
    std::string message = diagnostic.getMessage().rtrim(".!").str();
    if (!message.empty())
      message[0] = llvm::toLower(message[0]);
    report(getLocation(std::max(diagnostic.getLineNo(), 1),
                       diagnostic.getColumnNo() + 1),
           "malformed YAML: " + message);
  }

  /// `fallback` is the place of a value that isn't written at all.
  std::optional<PlanValue> convert(yaml::Node &node, FileLineColLoc fallback,
                                   unsigned depth) {
    // Plans are four levels deep; the bound keeps hostile files off the stack.
    constexpr unsigned kMaxDepth = 16;
    if (depth > kMaxDepth)
      return report(getLocation(node.getSourceRange()),
                    "values are nested too deeply for a plan");
    if (isa<yaml::NullNode>(node))
      return PlanValue(fallback);

    // LLVM has no exact place for collections; their key's serves.
    bool isCollection = isa<yaml::SequenceNode, yaml::MappingNode>(node);
    PlanValue value(isCollection ? fallback
                                 : getLocation(node.getSourceRange()));
    SmallString<32> storage;
    if (auto *scalar = dyn_cast<yaml::ScalarNode>(&node)) {
      StringRef raw = scalar->getRawValue();
      value.quoted = raw.starts_with("'") || raw.starts_with("\"");
      value.text = scalar->getValue(storage).str();
      bool null = value.text == "null" || value.text == "~" ||
                  value.text == "None" || value.text.empty();
      if (value.quoted || !null)
        value.kind = PlanValue::Kind::Scalar;
      return value;
    }
    if (auto *block = dyn_cast<yaml::BlockScalarNode>(&node)) {
      value.kind = PlanValue::Kind::Scalar;
      value.quoted = true;
      value.text = block->getValue().rtrim().str();
      return value;
    }
    if (auto *sequence = dyn_cast<yaml::SequenceNode>(&node)) {
      value.kind = PlanValue::Kind::List;
      for (yaml::Node &item : *sequence) {
        std::optional<PlanValue> converted =
            convert(item, value.loc, depth + 1);
        if (!converted)
          return std::nullopt;
        value.items.push_back(std::move(*converted));
      }
      return value;
    }
    if (auto *mapping = dyn_cast<yaml::MappingNode>(&node)) {
      value.kind = PlanValue::Kind::Map;
      for (yaml::KeyValueNode &pair : *mapping) {
        yaml::Node *keyNode = pair.getKey();
        if (!keyNode || failed)
          return std::nullopt;
        std::optional<PlanValue> key = convert(*keyNode, value.loc, depth + 1);
        yaml::Node *fieldNode = key ? pair.getValue() : nullptr;
        if (!fieldNode)
          return std::nullopt;
        std::optional<PlanValue> field =
            convert(*fieldNode, key->loc, depth + 1);
        if (!field)
          return std::nullopt;
        if (!key->isScalar())
          return report(key->loc,
                        "a key must be a text, found " + key->describe());
        value.items.push_back(std::move(*key));
        value.items.push_back(std::move(*field));
      }
      return value;
    }
    if (auto *alias = dyn_cast<yaml::AliasNode>(&node))
      return report(
          getLocation(SMRange(
              SMLoc::getFromPointer(alias->getName().data() - 1), SMLoc())),
          "'*" + alias->getName() +
              "' is a YAML alias, which plans don't have; put quotes "
              "around a pattern that begins with '*'");
    return report(value.loc, "this kind of YAML value has no place in a plan");
  }

  StringAttr path;
  llvm::SourceMgr sources;
  yaml::Stream stream;
  bool failed = false;
};

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
  std::optional<PlanValue> root = YamlReader(text, path, context).read();
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
