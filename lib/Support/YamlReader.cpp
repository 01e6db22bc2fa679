//===- YamlReader.cpp - YAML and JSON with locations ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/YamlReader.h"
#include "YamlScanner.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Support/InputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace mlir;
using namespace mlir::tp;
namespace yaml = llvm::yaml;

std::string YamlValue::describe() const {
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

std::optional<bool> YamlValue::getBool() const {
  if (!isScalar() || quoted)
    return std::nullopt;
  if (text == "true" || text == "True")
    return true;
  if (text == "false" || text == "False")
    return false;
  return std::nullopt;
}

std::optional<int64_t> YamlValue::getInteger() const {
  int64_t integer;
  if (!isScalar() || quoted || StringRef(text).getAsInteger(10, integer))
    return std::nullopt;
  return integer;
}

namespace {

/// Reads a document into YamlValues. It accepts the features of YAML that JSON
/// has, in either syntax: one document, without anchors, aliases or tags (the
/// scanner finds them).
class YamlReader {
public:
  YamlReader(StringRef text, StringRef path, StringRef what,
             MLIRContext *context)
      : path(StringAttr::get(context, path)), text(text), what(what),
        stream(text, sources, false) {
    sources.setDiagHandler(
        [](const llvm::SMDiagnostic &diagnostic, void *reader) {
          static_cast<YamlReader *>(reader)->reportSyntax(diagnostic);
        },
        this);
  }

  /// The document; nullopt if the file is malformed, which is then reported.
  std::optional<YamlValue> read() {
    if (std::optional<YamlProblem> problem = findYamlProblem(text, what))
      return report(*problem);
    auto document = stream.begin();
    std::optional<YamlValue> value;
    if (document != stream.end())
      if (yaml::Node *node = document->getRoot())
        value = convert(*node, getLocation(1, 1), 0);
    if (!failed && !stream.failed() && value && ++document != stream.end())
      if (yaml::Node *node = document->getRoot())
        if (!isa<yaml::NullNode>(node))
          report(getLocation(*node, getLocation(1, 1)),
                 what + " is one document, but another one begins here");
    if (failed || stream.failed())
      return std::nullopt;
    return value ? value : YamlValue(getLocation(1, 1));
  }

private:
  FileLineColLoc getLocation(unsigned line, unsigned column) {
    return FileLineColLoc::get(path, line, column);
  }
  /// In malformed text, LLVM's nodes may have a location outside the text.
  FileLineColLoc getLocation(SMLoc loc, FileLineColLoc fallback) {
    if (!loc.isValid() || !sources.FindBufferContainingLoc(loc))
      return fallback;
    auto [line, column] = sources.getLineAndColumn(loc);
    return getLocation(line, column);
  }
  FileLineColLoc getLocation(const yaml::Node &node, FileLineColLoc fallback) {
    return getLocation(node.getSourceRange().Start, fallback);
  }

  std::nullopt_t report(const YamlProblem &problem) {
    StringRef before = text.take_front(problem.offset);
    return report(
        getLocation(before.count('\n') + 1, before.size() - before.rfind('\n')),
        problem.message);
  }

  std::nullopt_t report(FileLineColLoc loc, const Twine &message) {
    failed = true;
    emitError(loc, message);
    return std::nullopt;
  }

  /// Reports an error of LLVM's parser. Its messages are sentences; ours
  /// aren't.
  void reportSyntax(const llvm::SMDiagnostic &diagnostic) {
    // Later syntax errors are consequences of the first one.
    if (failed)
      return;
    if (std::optional<YamlProblem> problem = findIndentationProblem(text)) {
      report(*problem);
      return;
    }
    std::string message = diagnostic.getMessage().rtrim(".!").str();
    if (!message.empty())
      message[0] = llvm::toLower(message[0]);
    report(getLocation(std::max(diagnostic.getLineNo(), 1),
                       diagnostic.getColumnNo() + 1),
           "malformed YAML: " + message);
  }

  /// `fallback` is the location for a value that isn't written at all.
  std::optional<YamlValue> convert(yaml::Node &node, FileLineColLoc fallback,
                                   unsigned depth) {
    // Plans are four levels deep. The bound keeps malicious files from
    // overflowing the stack.
    constexpr unsigned kMaxDepth = 16;
    if (depth > kMaxDepth)
      return report(getLocation(node, fallback),
                    "values are nested too deeply for " + what);
    if (isa<yaml::NullNode>(node))
      return YamlValue(fallback);

    // LLVM has no exact location for collections; use that of their key.
    bool isCollection = isa<yaml::SequenceNode, yaml::MappingNode>(node);
    YamlValue value(isCollection ? fallback : getLocation(node, fallback));
    SmallString<32> storage;
    if (auto *scalar = dyn_cast<yaml::ScalarNode>(&node)) {
      StringRef raw = scalar->getRawValue();
      value.quoted = raw.starts_with("'") || raw.starts_with("\"");
      value.text = scalar->getValue(storage).str();
      // An escape may give a control character, and messages print the text.
      if (std::optional<ControlCharacter> found =
              findControlCharacter(value.text))
        return report(value.loc, "the control character U+" +
                                     llvm::utohexstr(found->code,
                                                     /*LowerCase=*/false,
                                                     /*Width=*/4) +
                                     " has no place in " + what);
      bool null = value.text == "null" || value.text == "~" ||
                  value.text == "None" || value.text.empty();
      if (value.quoted || !null)
        value.kind = YamlValue::Kind::Scalar;
      return value;
    }
    if (auto *block = dyn_cast<yaml::BlockScalarNode>(&node)) {
      value.kind = YamlValue::Kind::Scalar;
      value.quoted = true;
      value.text = block->getValue().rtrim().str();
      return value;
    }
    if (auto *sequence = dyn_cast<yaml::SequenceNode>(&node)) {
      value.kind = YamlValue::Kind::List;
      for (yaml::Node &item : *sequence) {
        std::optional<YamlValue> converted =
            convert(item, value.loc, depth + 1);
        if (!converted)
          return std::nullopt;
        value.items.push_back(std::move(*converted));
      }
      return value;
    }
    if (auto *mapping = dyn_cast<yaml::MappingNode>(&node)) {
      value.kind = YamlValue::Kind::Map;
      for (yaml::KeyValueNode &pair : *mapping) {
        yaml::Node *keyNode = pair.getKey();
        if (!keyNode || failed)
          return std::nullopt;
        std::optional<YamlValue> key = convert(*keyNode, value.loc, depth + 1);
        yaml::Node *fieldNode = key ? pair.getValue() : nullptr;
        if (!fieldNode)
          return std::nullopt;
        std::optional<YamlValue> field =
            convert(*fieldNode, key->loc, depth + 1);
        if (!field)
          return std::nullopt;
        if (!key->isScalar())
          return report(getLocation(*keyNode, value.loc),
                        "a key must be a text, found " + key->describe());
        value.items.push_back(std::move(*key));
        value.items.push_back(std::move(*field));
      }
      return value;
    }
    return report(value.loc, "this kind of YAML value has no place in " + what);
  }

  StringAttr path;
  StringRef text, what;
  llvm::SourceMgr sources;
  yaml::Stream stream;
  bool failed = false;
};

} // namespace

std::optional<YamlValue> tp::readYaml(StringRef text, StringRef path,
                                      StringRef what, MLIRContext *context) {
  return YamlReader(text, path, what, context).read();
}
