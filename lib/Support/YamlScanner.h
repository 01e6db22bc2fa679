//===- YamlScanner.h - Problems in the text of a YAML file ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's parser accepts some texts that are meaningless in a plan, and its
// errors are in terms of its grammar. This scanner checks the text itself:
// brackets, commas, quotes and indentation.
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

/// The first thing in `text` that isn't YAML as plans use it; nullopt if there
/// is none. `what` is the kind of file in the message: "a plan".
std::optional<YamlProblem> findYamlProblem(StringRef text, StringRef what);

/// A line of `text` whose indentation doesn't match the lines above; nullopt if
/// there is none. Call it only for text that the parser rejects. It takes the
/// continuation lines of a plain scalar for separate lines.
std::optional<YamlProblem> findIndentationProblem(StringRef text);

} // namespace mlir::tp

#endif // TP_LIB_SUPPORT_YAMLSCANNER_H
