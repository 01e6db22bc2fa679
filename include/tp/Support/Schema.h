//===- Schema.h - What the maps of a file may hold --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader of a kind of file states the keys of each map once, in a table. It
// checks files by the table, and the JSON schema that editors use is written
// from the same table. A schema has only keywords that all drafts of JSON Schema
// from 7 to 2020-12 have in common, because editors differ in what they support.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SUPPORT_SCHEMA_H
#define TP_SUPPORT_SCHEMA_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <vector>

namespace mlir::tp {

/// A name that a file may have, and what it stands for. Of several names for
/// the same value, the first one is the usual one.
template <typename T>
struct NamedValue {
  StringLiteral name;
  T value;
};

/// The value called `name`; nullopt if there is none.
template <typename T, size_t N>
std::optional<T> findNamed(const NamedValue<T> (&values)[N], StringRef name) {
  for (const NamedValue<T> &candidate : values)
    if (candidate.name == name)
      return candidate.value;
  return std::nullopt;
}

/// The usual name of `value`, which is one of `values`.
template <typename T, size_t N>
StringRef getUsualName(const NamedValue<T> (&values)[N], T value) {
  return llvm::find_if(values,
                       [&](const NamedValue<T> &candidate) {
                         return candidate.value == value;
                       })
      ->name;
}

/// The values that a key may have: those of a JSON schema. The range of a number
/// is also here for readers, which check it.
class ValueType {
public:
  /// Values for which there is no function below.
  explicit ValueType(llvm::json::Object schema) : schema(std::move(schema)) {}

  static ValueType boolean();
  static ValueType integer(std::optional<int64_t> least = std::nullopt,
                           std::optional<int64_t> most = std::nullopt);
  static ValueType number(double least,
                          std::optional<double> most = std::nullopt);
  static ValueType numberAbove(double least,
                               std::optional<double> most = std::nullopt);
  static ValueType text();
  static ValueType list(const ValueType &item, unsigned minItems = 0);
  static ValueType oneOf(ArrayRef<StringRef> names);

  template <typename T, size_t N>
  static ValueType name(const NamedValue<T> (&values)[N]) {
    SmallVector<StringRef> names;
    for (const NamedValue<T> &value : values)
      names.push_back(value.name);
    ValueType type = oneOf(names);
    for (const NamedValue<T> &value : values)
      type.names.emplace_back(value.name, getUsualName(values, value.value));
    return type;
  }

  llvm::json::Object toSchema() const { return schema; }

  /// The range of a number; `isAbove`: `least` itself isn't in it.
  std::optional<double> least, most;
  bool isAbove = false;
  /// Of a name: all names, each with the usual name of its value.
  std::vector<std::pair<StringRef, StringRef>> names;

private:
  llvm::json::Object schema;
};

/// A key of a map.
struct KeySpec {
  StringLiteral name;
  ValueType type;
  /// For the user of an editor: a noun phrase.
  StringLiteral description;
  enum Need { Optional, Required } need = Optional;
  /// If this isn't empty, the key is only for maps whose name is one of these
  /// usual names.
  std::vector<StringRef> onlyFor = {};

  bool isFor(StringRef usualName) const {
    return onlyFor.empty() || llvm::is_contained(onlyFor, usualName);
  }
};

/// The schema of a map with these keys and no others. The key `nameKey`, if
/// there is one, says which other keys the map may have (KeySpec::onlyFor).
llvm::json::Object getMapSchema(ArrayRef<KeySpec> keys,
                                StringRef nameKey = "name");

/// The schema of such a map, or of the name alone: `AdamW` stands for
/// `{name: AdamW}`.
llvm::json::Object getNamedSchema(ArrayRef<KeySpec> keys,
                                  StringRef nameKey = "name");

/// Completes the schema of a file's root.
llvm::json::Value makeFileSchema(llvm::json::Object root, StringRef title,
                                 StringRef description);

/// `fragments` as alternatives.
llvm::json::Object anyOf(std::vector<llvm::json::Value> fragments);

} // namespace mlir::tp

#endif // TP_SUPPORT_SCHEMA_H
