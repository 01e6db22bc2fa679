//===- ReadArgument.h - arguments in an exported program --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHEXPORT_READARGUMENT_H
#define TP_LIB_IMPORT_TORCHEXPORT_READARGUMENT_H

#include "ExportedProgram.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::tp {

/// The values of a graph by their names.
using ExportScope = llvm::StringMap<ValueId>;

/// Throws an ExportError if the graph has no value of this name.
ValueId lookUp(StringRef name, const ExportScope &scope);

/// Reads an `Argument` of the schema, without its name.
ExportArgument readArgument(JsonNode node, const ExportScope &scope);

/// The name of an `Argument` that is one value.
std::string readName(JsonNode node);
/// The names that a result of a node defines.
std::vector<std::string> readNames(JsonNode node);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_READARGUMENT_H
