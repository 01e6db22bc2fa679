//===- YamlScanner.h - what is wrong with a YAML file's text ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's parser takes some texts that mean nothing in a plan, and words its
// errors by its grammar. This looks at the text itself: brackets, commas,
// quotes and indentation.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SUPPORT_YAMLSCANNER_H
#define TP_LIB_SUPPORT_YAMLSCANNER_H

#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>

namespace mlir::tp {

struct YamlProblem {
  /// Into the text.
  size_t offset;
  std::string message;
};

/// The first thing in `text` that isn't YAML as plans have it; nothing where
/// all is well. `what` is what the message calls the file: "a plan".
std::optional<YamlProblem> findYamlProblem(StringRef text, StringRef what);

/// A line of `text` whose indentation doesn't fit those above; nothing where
/// there is none. Only for a text that can't be parsed: it takes the further
/// lines of a plain text for lines of their own.
std::optional<YamlProblem> findIndentationProblem(StringRef text);

} // namespace mlir::tp

#endif // TP_LIB_SUPPORT_YAMLSCANNER_H
