//===- Pattern.cpp - Patterns of module names in plans --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Plan/Pattern.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include <fnmatch.h>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// The end of the bracket expression that opens at `open`: the index of its
/// `]`, or npos when it is never closed. A `]` right after `[` or `[!` is a
/// member of the set.
static size_t findBracketEnd(StringRef pattern, size_t open) {
  size_t begin = open + 1;
  if (begin < pattern.size() && pattern[begin] == '!')
    ++begin;
  return pattern.find(']', begin + 1);
}

bool plan::matchToken(StringRef pattern, StringRef token) {
  // Some characters are special in POSIX fnmatch but not in Python's: `\`
  // anywhere, `[` and a leading `^` inside brackets. Escape them.
  std::string posix;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    size_t end = c == '[' ? findBracketEnd(pattern, i) : StringRef::npos;
    if (end == StringRef::npos) {
      if (c == '[' || c == '\\')
        posix += '\\';
      posix += c;
      continue;
    }
    posix += '[';
    if (pattern[++i] == '!') {
      posix += '!';
      ++i;
    }
    for (; i < end; ++i) {
      if (StringRef("[]\\^").contains(pattern[i]))
        posix += '\\';
      posix += pattern[i];
    }
    posix += ']';
  }
  return fnmatch(posix.c_str(), token.str().c_str(), 0) == 0;
}

static SmallVector<StringRef> splitFqn(StringRef fqn) {
  SmallVector<StringRef> tokens;
  if (!fqn.empty())
    fqn.split(tokens, '.');
  return tokens;
}

static bool matchTokens(ArrayRef<StringRef> patterns,
                        ArrayRef<StringRef> tokens) {
  return patterns.size() == tokens.size() &&
         llvm::all_of(llvm::zip(patterns, tokens), [](auto pair) {
           return matchToken(std::get<0>(pair), std::get<1>(pair));
         });
}

bool plan::matchFqn(StringRef pattern, StringRef fqn) {
  return matchTokens(splitFqn(pattern), splitFqn(fqn));
}

/// `fqn` as Hugging Face spells its plans' keys: a number is a `*`. Version 4
/// of transformers takes any digits for a number, later versions only whole
/// tokens.
static std::string generalize(StringRef fqn, bool anyDigits) {
  std::string result;
  for (StringRef token : splitFqn(fqn)) {
    result += result.empty() ? "" : ".";
    bool isNumber = llvm::all_of(token, llvm::isDigit);
    for (size_t i = 0; i < token.size(); ++i) {
      bool isDigit = llvm::isDigit(token[i]) && (isNumber || anyDigits);
      if (!isDigit)
        result += token[i];
      else if (i == 0 || !llvm::isDigit(token[i - 1]))
        result += '*';
    }
  }
  return result;
}

static bool matchHuggingFace(StringRef pattern, StringRef fqn) {
  for (bool anyDigits : {false, true}) {
    std::string key = generalize(fqn, anyDigits);
    if (pattern == key ||
        (!pattern.empty() && pattern == StringRef(key).split('.').second))
      return true;
  }
  return false;
}

/// Translates a Python regular expression to POSIX, which has no classes with a
/// backslash and no non-capturing groups. It matches at the beginning, as
/// re.match does.
static std::string toPosix(StringRef pattern) {
  std::string posix = "^(";
  bool inBracket = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    StringRef set;
    if (c == '\\' && i + 1 < pattern.size())
      set = pattern[i + 1] == 'd'   ? "0-9"
            : pattern[i + 1] == 'w' ? "a-zA-Z0-9_"
                                    : "";
    if (!set.empty()) {
      posix += inBracket ? set.str() : ("[" + set + "]").str();
      ++i;
    } else if (c == '\\' && i + 1 < pattern.size()) {
      posix += {c, pattern[++i]};
    } else if (pattern.substr(i).starts_with("(?:")) {
      posix += '(';
      i += 2;
    } else {
      inBracket = c == '[' || (inBracket && c != ']');
      posix += c;
    }
  }
  return posix + ")";
}

bool plan::matchFqn(StringRef pattern, StringRef fqn, MatchMode mode) {
  switch (mode) {
  case MatchMode::Fnmatch:
    return matchFqn(pattern, fqn);
  case MatchMode::HuggingFace:
    return matchHuggingFace(pattern, fqn);
  case MatchMode::Regex:
    // The root module's FQN is empty; the empty pattern matches only the root.
    if (pattern.empty() || fqn.empty())
      return pattern.empty() && fqn.empty();
    return llvm::Regex(toPosix(pattern)).match(fqn);
  }
  llvm_unreachable("all modes are handled");
}

std::string plan::checkPattern(StringRef pattern, MatchMode mode) {
  if (mode != MatchMode::Regex) {
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] != '[')
        continue;
      i = findBracketEnd(pattern, i);
      if (i == StringRef::npos)
        return "isn't a pattern: its '[' lacks a ']'";
    }
    return "";
  }
  // LLVM's parser recurses for each parenthesis, and repetition counts
  // multiply: a few nested ones exhaust the memory.
  constexpr size_t kMaxRegex = 4096;
  if (pattern.size() > kMaxRegex)
    return "has " + std::to_string(pattern.size()) +
           " characters, expected at most " + std::to_string(kMaxRegex);
  if (pattern.count('{') > 1)
    return "isn't a regular expression: it has more than one repetition count";
  std::string error;
  return llvm::Regex(toPosix(pattern)).isValid(error)
             ? ""
             : "isn't a regular expression: " + error;
}

std::string plan::getPattern(StringRef fqn, MatchMode mode) {
  std::string pattern;
  bool isRegex = mode == MatchMode::Regex;
  for (StringRef token : splitFqn(fqn)) {
    bool isNumber = llvm::all_of(token, llvm::isDigit);
    pattern += pattern.empty() ? "" : isRegex ? "\\." : ".";
    pattern += !isNumber ? token.str() : isRegex ? "\\d+" : "*";
  }
  return isRegex ? pattern + "$" : pattern;
}

void ModuleTree::addModule(StringRef fqn) {
  Node *node = &root;
  for (StringRef token : splitFqn(fqn))
    node = &node->children[token.str()];
  if (!node->called)
    modules.push_back(fqn.str());
  node->called = true;
}

/// "'a', 'b', 'c', …", with at most eight names.
static std::string listNames(ArrayRef<StringRef> names) {
  constexpr size_t kMaxNames = 8;
  std::string list;
  for (StringRef name : names.take_front(kMaxNames))
    list += (list.empty() ? "'" : ", '") + name.str() + "'";
  return names.size() > kMaxNames ? list + ", …" : list;
}

/// If `pattern` matches the end of a name, a pattern of the prefix before that
/// end; "" if it matches the end of no name.
static std::string findMissingPrefix(ArrayRef<std::string> names,
                                     StringRef pattern, MatchMode mode) {
  bool isRegex = mode == MatchMode::Regex;
  for (StringRef name : names) {
    SmallVector<StringRef> path = splitFqn(name);
    ArrayRef<StringRef> tokens(path);
    for (size_t count = path.size(); count-- > 1;) {
      if (!matchFqn(pattern, llvm::join(tokens.drop_front(count), "."), mode))
        continue;
      std::string prefix;
      for (StringRef token : tokens.take_front(count)) {
        bool isNumber = llvm::all_of(token, llvm::isDigit);
        prefix += !isNumber ? token.str() : isRegex ? "\\d+" : "*";
        prefix += isRegex ? "\\." : ".";
      }
      if (matchFqn(prefix + pattern.str(), name, mode))
        return prefix;
    }
  }
  return "";
}

std::string ModuleTree::explainMismatch(StringRef pattern,
                                        MatchMode mode) const {
  if (mode == MatchMode::Fnmatch)
    return explainFnmatch(pattern);
  bool isRegex = mode == MatchMode::Regex;
  std::string text =
      isRegex ? "no FQN begins with it"
              : "no FQN matches it after each number is replaced by '*'";
  std::string prefix = findMissingPrefix(modules, pattern, mode);
  if (!prefix.empty())
    return (text + "; did you mean '" + prefix + pattern + "'?").str();
  if (isRegex)
    return text;
  std::vector<std::string> keys;
  for (const std::string &module : modules)
    keys.push_back(generalize(module, /*anyDigits=*/false));
  SmallVector<StringRef> candidates(keys.begin(), keys.end());
  return text + suggestNearest(pattern, candidates);
}

std::string ModuleTree::explainNoParameter(StringRef pattern,
                                           MatchMode mode) const {
  for (const std::string &module : modules)
    if (matchFqn(pattern, module, mode))
      return "'" + module +
             "' is a module; placements are those of a parameter, a module has "
             "a style";
  SmallVector<StringRef> candidates(parameters.begin(), parameters.end());
  std::string hint = suggestNearest(pattern, candidates);
  return hint.empty() ? "the model has the parameters " + listNames(candidates)
                      : hint.substr(2);
}

std::string ModuleTree::explainFnmatch(StringRef pattern) const {
  SmallVector<StringRef> tokens = splitFqn(pattern);
  if (tokens.empty())
    return "the model has no root module";

  for (StringRef parameter : parameters)
    if (matchFqn(pattern, parameter))
      return ("'" + parameter +
              "' is a parameter; styles apply to modules, here '" +
              parameter.rsplit('.').first + "'")
          .str();

  for (StringRef parameter : parameters) {
    StringRef holder = parameter.rsplit('.').first;
    if (holder != parameter && !llvm::is_contained(modules, holder) &&
        matchFqn(pattern, holder))
      return ("the model never calls '" + holder +
              "', it uses its parameters; they can have a style for weights, "
              "such as ColwiseParallel, or placements")
          .str();
  }

  // A missing prefix is the most likely mistake, because plans are often
  // written for an inner model.
  for (StringRef module : modules) {
    SmallVector<StringRef> path = splitFqn(module);
    if (path.size() > tokens.size() &&
        matchTokens(tokens,
                    ArrayRef<StringRef>(path).take_back(tokens.size()))) {
      std::string prefix = getPattern(
          llvm::join(ArrayRef<StringRef>(path).drop_back(tokens.size()), "."),
          MatchMode::Fnmatch);
      std::string problem =
          tokens.front().contains('*')
              ? "a '*' stands for a part of one name, and never for a dot"
              : ("no submodule '" + tokens.front() + "' in the root module")
                    .str();
      return problem + "; did you mean '" + prefix + "." + pattern.str() + "'?";
    }
  }

  // Or the pattern has one prefix too many, that of a wrapper.
  SmallVector<StringRef> heads;
  bool isKnown = false;
  for (auto &[name, child] : root.children) {
    heads.push_back(name);
    isKnown |= matchToken(tokens.front(), name);
  }
  isKnown |= !findNearest(tokens.front(), heads).empty(); // or misspelt
  for (size_t count = 1; count < tokens.size() && !isKnown; ++count) {
    ArrayRef<StringRef> rest = ArrayRef<StringRef>(tokens).drop_front(count);
    if (llvm::all_of(rest, [](StringRef token) {
          return token.find_first_not_of("*?") == StringRef::npos;
        }))
      break; // it matches anything
    for (StringRef module : modules)
      if (matchTokens(rest, splitFqn(module)))
        return ("no submodule '" + tokens.front() +
                "' in the root module; did you mean '" + llvm::join(rest, ".") +
                "'?")
            .str();
  }

  // Follow the tokens as far as they match.
  SmallVector<std::pair<std::string, const Node *>> reached = {{"", &root}};
  for (StringRef token : tokens) {
    decltype(reached) next;
    for (auto &[fqn, node] : reached)
      for (auto &[name, child] : node->children)
        if (matchToken(token, name))
          next.emplace_back(fqn.empty() ? name : fqn + "." + name, &child);
    if (!next.empty()) {
      reached = std::move(next);
      continue;
    }
    SmallVector<StringRef> names;
    for (auto &entry : reached)
      for (auto &child : entry.second->children)
        if (!llvm::is_contained(names, child.first))
          names.push_back(child.first);
    std::string where = reached.front().first.empty()
                            ? "the root module"
                            : "'" + reached.front().first + "'";
    if (names.empty())
      return where + " has no submodules";
    std::string hint = suggestNearest(token, names);
    if (hint.empty())
      hint = "; its submodules are " + listNames(names);
    return ("no submodule '" + token + "' in " + where + hint).str();
  }

  // All tokens matched, so the matching modules are never called.
  SmallVector<StringRef> names;
  for (auto &child : reached.front().second->children)
    names.push_back(child.first);
  return "the model never calls '" + reached.front().first +
         "' itself, only its submodules " + listNames(names);
}
