//===- YamlReader.h - YAML and JSON with locations --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_YAMLREADER_H
#define TP_SUPPORT_YAMLREADER_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::tp {

/// A YAML value and its location.
struct YamlValue {
  enum class Kind { Null, Scalar, List, Map };

  explicit YamlValue(FileLineColLoc loc) : loc(loc) {}

  Kind kind = Kind::Null;
  FileLineColLoc loc;
  /// The text of a scalar, without quotes.
  std::string text;
  /// A quoted scalar is always a string.
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

  /// The value's description in errors: "'x'", "a list", …
  std::string describe() const;
  /// The value as a boolean or integer; nullopt if it isn't one.
  std::optional<bool> getBool() const;
  std::optional<int64_t> getInteger() const;
};

/// Parses `text`, the YAML or JSON in the file `path`. If it is malformed,
/// reports an error at its line and column and returns nullopt. `what` is the
/// kind of file in errors: "a plan".
std::optional<YamlValue> readYaml(StringRef text, StringRef path,
                                  StringRef what, MLIRContext *context);

} // namespace mlir::tp

#endif // TP_SUPPORT_YAMLREADER_H
