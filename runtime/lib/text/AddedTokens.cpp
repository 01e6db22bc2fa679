//===- AddedTokens.cpp - Tokens found before the model runs ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/AddedTokens.h"

#include "text/CharacterClasses.h"

using namespace tprt;
using namespace tprt::text;

/// Searching takes up to this many steps for each code point of a text.
static constexpr size_t maxTokenUnits = 4096;

AddedTokens::AddedTokens(const Component &component,
                         const Vocabulary &vocabulary,
                         const Normalizer &normalizer) {
  for (const Component &each : component.getList())
    add(each, vocabulary, normalizer);
}

void AddedTokens::add(const Component &component, const Vocabulary &vocabulary,
                      const Normalizer &normalizer) {
  std::string content = component["content"].getString();
  int64_t id = component["id"].getInteger(maxId);
  std::optional<int64_t> known = vocabulary.getId(content);
  if (known && *known != id)
    component.fail("'" + content + "' has the id " + std::to_string(id) +
                   ", but " + std::to_string(*known) +
                   " in the model's vocabulary");
  const std::string *other = vocabulary.getToken(id);
  if (other && *other != content)
    component.fail("'" + content + "' has the id " + std::to_string(id) +
                   " of '" + *other + "' in the model's vocabulary");
  if (content.empty()) // is never found
    return;

  Text text{toUtf16(content)};
  bool isNormalized = component["normalized"].getBool();
  if (isNormalized && normalizer)
    normalizer(text);
  if (text.units.empty() || text.units.size() > maxTokenUnits)
    component.fail("'" + content + "' has " +
                   std::to_string(text.units.size()) +
                   " units of UTF-16 when normalized, expected 1 to " +
                   std::to_string(maxTokenUnits));
  Trie<char16_t> &trie = isNormalized ? inNormalized : inInput;
  bool isNew = tokens
                   .try_emplace(id, Token{toUtf8(text.units),
                                          component["single_word"].getBool(),
                                          component["lstrip"].getBool(),
                                          component["rstrip"].getBool()})
                   .second;
  isNew &= ids.try_emplace(content, id).second;
  if (!isNew || trie.contains(text.units))
    component.fail("another added token has the same id or content as '" +
                   content + "'");
  trie.insert(text.units, id);
  if (component["special"].getBool())
    special.insert(content);
  if (!known)
    ++numNew;
}

std::optional<int64_t> AddedTokens::getId(const std::string &content) const {
  auto found = ids.find(content);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

const std::string *AddedTokens::getToken(int64_t id) const {
  auto found = tokens.find(id);
  return found == tokens.end() ? nullptr : &found->second.text;
}

static bool endsWithWord(std::u16string_view units) {
  if (units.empty())
    return false;
  size_t end = units.size();
  char32_t codePoint = 0;
  U16_PREV(units.data(), 0, end, codePoint);
  return isWord(codePoint);
}

static bool beginsWithWord(std::u16string_view units) {
  if (units.empty())
    return false;
  size_t begin = 0;
  char32_t codePoint = 0;
  U16_NEXT(units.data(), begin, units.size(), codePoint);
  return isWord(codePoint);
}

// White space has no surrogates.
static size_t skipSpaceLeft(std::u16string_view units, size_t end) {
  while (end > 0 && isWhitespace(units[end - 1]))
    --end;
  return end;
}

static size_t skipSpaceRight(std::u16string_view units, size_t begin) {
  while (begin < units.size() && isWhitespace(units[begin]))
    ++begin;
  return begin;
}

/// Of the tokens that begin first, the longest is taken. The search goes on
/// where it ends, also if it is part of a word and must not be.
void AddedTokens::split(const Text &text, const Trie<char16_t> &trie,
                        std::vector<Segment> &segments) const {
  std::u16string_view units = text.units;
  size_t covered = 0; // by segments
  auto addText = [&](size_t begin, size_t end) {
    if (begin < end)
      segments.push_back({text.slice(begin, end), std::nullopt});
  };
  for (size_t next = 0; next < units.size();) {
    size_t begin = next, size = 0;
    int64_t id = 0;
    trie.forEachPrefix(units.substr(begin), trie.root,
                       [&](size_t longest, int64_t number) {
                         size = longest;
                         id = number;
                       });
    if (size == 0) {
      ++next;
      continue;
    }
    size_t end = next = begin + size;
    const Token &token = tokens.at(id);
    if (token.isSingleWord && (endsWithWord(units.substr(0, begin)) ||
                               beginsWithWord(units.substr(end))))
      continue;
    if (token.stripsLeft)
      begin = std::max(covered, skipSpaceLeft(units, begin));
    if (token.stripsRight)
      end = skipSpaceRight(units, end);
    addText(covered, begin);
    segments.push_back({{}, id});
    covered = end;
  }
  addText(covered, units.size());
}
