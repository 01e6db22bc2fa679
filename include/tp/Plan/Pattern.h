//===- Pattern.h - which modules a plan entry means -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Patterns are matched as PyTorch's parallelize_module does, unless a plan asks
// for the ways of Hugging Face or vLLM: pattern and FQN are split at dots and
// compared token by token with Python's fnmatch. So `*` never crosses a dot,
// and a pattern matches only modules as deep as itself.
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

/// Whether `pattern` means the module `fqn`. The empty pattern is the root,
/// whose FQN is empty.
bool matchFqn(StringRef pattern, StringRef fqn);

/// How patterns are compared with FQNs.
enum class MatchMode {
  /// PyTorch: fnmatch, token by token.
  Fnmatch,
  /// Hugging Face: a `*` of the pattern stands for a number, and the pattern
  /// may
  /// lack the FQN's first token (the name of the base model, `model.`).
  HuggingFace,
  /// vLLM: a regular expression in Python's spelling that matches at the
  /// begin of the FQN, as re.match.
  Regex,
};

/// The same by `mode`.
bool matchFqn(StringRef pattern, StringRef fqn, MatchMode mode);

/// Why `pattern` is none by `mode`, as "isn't a regular expression: …"; empty
/// when it is one.
std::string checkPattern(StringRef pattern, MatchMode mode);

/// The pattern of the modules that are like `fqn` but for numbers.
std::string getPattern(StringRef fqn, MatchMode mode);

/// The tree of a model's modules, as their FQNs spell it.
class ModuleTree {
public:
  /// Adds a module that the model calls, and the modules that contain it.
  void addModule(StringRef fqn);
  void addParameter(StringRef fqn) { parameters.push_back(fqn.str()); }

  /// Why `pattern` matches no called module, and what it may have meant.
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
