//===- FieldReader.h - The fields of a map in a file ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_FIELDREADER_H
#define TP_SUPPORT_FIELDREADER_H

#include "mlir/IR/Diagnostics.h"
#include "tp/Support/NearestName.h"
#include "tp/Support/Schema.h"
#include "tp/Support/YamlReader.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::tp {

/// The base of readers of files. They report each problem and continue.
class FieldReader {
public:
  bool hasFailed() const { return failed; }

protected:
  /// The fields of a map by name.
  class Fields {
  public:
    /// The field's value; null if the map lacks the field.
    const YamlValue *operator[](StringRef name) const {
      return fields.lookup(name).second;
    }
    FileLineColLoc getKeyLoc(StringRef name) const {
      return fields.lookup(name).first->loc;
    }
    /// What the key called `name` may hold.
    const ValueType &getType(StringRef name) const {
      return llvm::find_if(keys,
                           [&](const KeySpec &key) { return key.name == name; })
          ->type;
    }
    /// The keys that the map may have.
    ArrayRef<KeySpec> getKeys() const { return keys; }

  private:
    friend class FieldReader;
    ArrayRef<KeySpec> keys;
    llvm::StringMap<std::pair<const YamlValue *, const YamlValue *>> fields;
  };

  void report(FileLineColLoc loc, const Twine &message) {
    failed = true;
    emitError(loc, message);
  }

  /// Reports a wrong value; `rule` says what is right.
  void reportValue(const YamlValue &value, const Twine &rule) {
    report(value.loc, rule + ", found " + value.describe());
  }

  static std::string suggestOr(StringRef name, ArrayRef<StringRef> candidates,
                               StringRef otherwise) {
    std::string hint = suggestNearest(name, candidates);
    return hint.empty() ? otherwise.str() : hint;
  }

  /// Calls `handle` for each field, and reports keys that occur twice. `what`
  /// is the map's name in errors.
  void forEachField(
      const YamlValue &map, StringRef what,
      function_ref<void(const YamlValue &, const YamlValue &)> handle) {
    llvm::StringMap<const YamlValue *> seen;
    for (size_t i = 0; i < map.getNumFields(); ++i) {
      const YamlValue &key = map.getKey(i);
      if (map.getField(i).isNull() && !key.quoted &&
          StringRef(key.text).contains(':'))
        report(key.loc, "'" + key.text + "' needs a space after ':'");
      else if (seen.try_emplace(key.text, &key).second)
        handle(key, map.getField(i));
      else
        report(key.loc, "'" + key.text + "' comes twice in this " + what);
    }
  }

  /// Returns the fields that `keys` lists, and reports all others.
  Fields readFields(const YamlValue &map, StringRef what,
                    ArrayRef<KeySpec> keys) {
    Fields result;
    result.keys = keys;
    SmallVector<StringRef> names;
    for (const KeySpec &key : keys)
      names.push_back(key.name);
    forEachField(map, what, [&](const YamlValue &key, const YamlValue &field) {
      if (llvm::is_contained(names, key.text))
        result.fields[key.text] = {&key, &field};
      else
        report(key.loc, "unknown key '" + key.text + "'" +
                            suggestOr(key.text, names,
                                      "; keys are " + llvm::join(names, ", ")));
    });
    return result;
  }

  bool failed = false;
};

} // namespace mlir::tp

#endif // TP_SUPPORT_FIELDREADER_H
