//===- Pattern.cpp - which modules a plan entry means ---------------------===//

#include "tp/Plan/Pattern.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
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
  // POSIX fnmatch gives some characters a meaning that Python's doesn't: `\`
  // anywhere, `[` and a leading `^` inside brackets. Escaped, they stand for
  // themselves.
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

StringRef plan::findNearest(StringRef name, ArrayRef<StringRef> candidates) {
  StringRef nearest;
  // Two letters, or a third of them, may differ; beyond that a guess is noise.
  unsigned limit = name.size() < 3 ? 1 : std::max<unsigned>(2, name.size() / 3);
  unsigned best = limit + 1;
  for (StringRef candidate : candidates) {
    unsigned distance = candidate.equals_insensitive(name)
                            ? 0
                            : name.edit_distance(candidate, true, best);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string plan::suggestNearest(StringRef name,
                                 ArrayRef<StringRef> candidates) {
  StringRef nearest = findNearest(name, candidates);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}

void ModuleTree::addModule(StringRef fqn) {
  Node *node = &root;
  for (StringRef token : splitFqn(fqn))
    node = &node->children[token.str()];
  if (!node->called)
    modules.push_back(fqn.str());
  node->called = true;
}

/// "'a', 'b', 'c', …" of at most eight names.
static std::string listNames(ArrayRef<StringRef> names) {
  constexpr size_t kMaxNames = 8;
  std::string list;
  for (StringRef name : names.take_front(kMaxNames))
    list += (list.empty() ? "'" : ", '") + name.str() + "'";
  return names.size() > kMaxNames ? list + ", …" : list;
}

std::string ModuleTree::explainMismatch(StringRef pattern) const {
  SmallVector<StringRef> tokens = splitFqn(pattern);
  if (tokens.empty())
    return "the model has no root module";

  for (StringRef parameter : parameters)
    if (matchFqn(pattern, parameter))
      return ("'" + parameter +
              "' is a parameter; styles apply to modules, here '" +
              parameter.rsplit('.').first + "'")
          .str();

  // A prefix that the pattern lacks is the likeliest slip: plans are often
  // written for an inner model.
  for (StringRef module : modules) {
    SmallVector<StringRef> path = splitFqn(module);
    if (path.size() > tokens.size() &&
        matchTokens(tokens,
                    ArrayRef<StringRef>(path).take_back(tokens.size()))) {
      std::string prefix =
          llvm::join(ArrayRef<StringRef>(path).drop_back(tokens.size()), ".");
      return ("no submodule '" + tokens.front() +
              "' in the root module; did you mean '" + prefix + "." + pattern +
              "'?")
          .str();
    }
  }

  // Follow the tokens as far as they lead somewhere.
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

  // Everything matched, so what matched is never called.
  SmallVector<StringRef> names;
  for (auto &child : reached.front().second->children)
    names.push_back(child.first);
  return "the model never calls '" + reached.front().first +
         "' itself, only its submodules " + listNames(names);
}
