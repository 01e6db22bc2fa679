//===- SchemaCompletion.h - Proposals by a JSON schema ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_LSP_SERVER_SCHEMACOMPLETION_H
#define TP_TOOLS_LSP_SERVER_SCHEMACOMPLETION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <string>
#include <vector>

/// A place in YAML that is being written.
struct YamlPlace {
  /// The keys that lead to the map, or, if `isValue`, to the value at this
  /// place; "[]" stands for an item of a list.
  std::vector<std::string> path;
  bool isValue = false;
};

/// The place at the end of `text`, the file up to the cursor.
YamlPlace findPlace(llvm::StringRef text);

/// The keys or values that `schema` has at `place`, with their descriptions.
std::map<std::string, std::string> propose(const llvm::json::Object &schema,
                                           const YamlPlace &place);

#endif // TP_TOOLS_LSP_SERVER_SCHEMACOMPLETION_H
