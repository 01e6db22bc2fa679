//===- YamlReader.h - YAML and JSON with places -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_YAMLREADER_H
#define TP_SUPPORT_YAMLREADER_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::tp {

/// A YAML value and where it stands.
struct YamlValue {
  enum class Kind { Null, Scalar, List, Map };

  explicit YamlValue(FileLineColLoc loc) : loc(loc) {}

  Kind kind = Kind::Null;
  FileLineColLoc loc;
  /// Of a scalar; quotes are gone.
  std::string text;
  /// A quoted scalar is a string, whatever it looks like.
  bool quoted = false;
  /// The items of a list; the keys and values of a map, in turn.
  std::vector<YamlValue> items;

  bool isNull() const { return kind == Kind::Null; }
  bool isScalar() const { return kind == Kind::Scalar; }
  bool isList() const { return kind == Kind::List; }
  bool isMap() const { return kind == Kind::Map; }
  size_t getNumFields() const { return items.size() / 2; }
  const YamlValue &getKey(size_t i) const { return items[2 * i]; }
  const YamlValue &getField(size_t i) const { return items[2 * i + 1]; }

  /// What an error calls it: "'x'", "a list", …
  std::string describe() const;
  /// The boolean or integer that it is; nothing when it is something else.
  std::optional<bool> getBool() const;
  std::optional<int64_t> getInteger() const;
};

/// The value that `text`, YAML or JSON, holds; nothing when it is malformed,
/// which was reported at its line and column of the file `path`. `what` is what
/// errors call the file: "a plan".
std::optional<YamlValue> readYaml(StringRef text, StringRef path,
                                  StringRef what, MLIRContext *context);

} // namespace mlir::tp

#endif // TP_SUPPORT_YAMLREADER_H
