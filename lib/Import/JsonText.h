//===- JsonText.h - parse JSON of other programs ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_JSONTEXT_H
#define TP_LIB_IMPORT_JSONTEXT_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlir::tp {

/// Parses a text whose lists and objects nest at most `maxDepth` deep. LLVM's
/// parser recurses for each level, and must not exhaust the stack.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text, int maxDepth);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_JSONTEXT_H
