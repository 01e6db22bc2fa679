//===- Pattern.h - Patterns of module names in plans ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By default, patterns are matched as by PyTorch's parallelize_module: pattern
// and FQN are split at dots and compared token by token with Python's fnmatch.
// So `*` never crosses a dot, and a pattern matches only modules of its own
// depth. A plan can select Hugging Face's or vLLM's rules instead.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_PATTERN_H
#define TP_PLAN_PATTERN_H

#include "mlir/Support/LLVM.h"
#include "tp/Support/NearestName.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <map>
#include <string>

namespace mlir::tp::plan {

/// Python's fnmatch.fnmatchcase: `*`, `?`, `[seq]`, `[!seq]`; a bracket that
/// is never closed and a backslash stand for themselves.
bool matchToken(StringRef pattern, StringRef token);

/// Whether `pattern` matches the module `fqn`. The empty pattern matches the
/// root, whose FQN is empty.
bool matchFqn(StringRef pattern, StringRef fqn);

/// How patterns are compared with FQNs.
enum class MatchMode {
  /// PyTorch: fnmatch, token by token.
  Fnmatch,
  /// Hugging Face: a `*` in the pattern stands for a number, and the pattern
  /// may lack the FQN's first token (the name of the base model, `model.`).
  HuggingFace,
  /// vLLM: a regular expression in Python's syntax that matches at the
  /// beginning of the FQN, as re.match does.
  Regex,
};

/// The same with the rules of `mode`.
bool matchFqn(StringRef pattern, StringRef fqn, MatchMode mode);

/// Why `pattern` isn't a valid pattern in `mode`, such as "isn't a regular
/// expression: …"; empty if it is valid.
std::string checkPattern(StringRef pattern, MatchMode mode);

/// The pattern of the modules whose FQNs differ from `fqn` only in numbers.
std::string getPattern(StringRef fqn, MatchMode mode);

/// The tree of a model's modules, built from their FQNs.
class ModuleTree {
public:
  /// Adds a module that the model calls, and the modules that contain it.
  void addModule(StringRef fqn);
  void addParameter(StringRef fqn) { parameters.push_back(fqn.str()); }

  /// Why `pattern` matches no called module, and what may have been meant.
  std::string explainMismatch(StringRef pattern, MatchMode mode) const;
  /// The same for a pattern that should match parameters.
  std::string explainNoParameter(StringRef pattern, MatchMode mode) const;

private:
  std::string explainFnmatch(StringRef pattern) const;

  struct Node {
    /// Containers such as nn.ModuleList are never called themselves.
    bool called = false;
    std::map<std::string, Node> children;
  };

  Node root;
  std::vector<std::string> modules;
  std::vector<std::string> parameters;
};

} // namespace mlir::tp::plan

#endif // TP_PLAN_PATTERN_H
