//===- Quote.h - Texts in quotes --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_QUOTE_H
#define TP_SUPPORT_QUOTE_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::tp {

/// `text`, which has no control characters, in double quotes: a literal of
/// Python, JSON and YAML.
std::string quote(llvm::StringRef text);

} // namespace mlir::tp

#endif // TP_SUPPORT_QUOTE_H
