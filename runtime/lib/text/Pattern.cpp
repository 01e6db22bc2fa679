//===- Pattern.cpp - What splits and replacements look for ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/Pattern.h"

#include "text/RegexSyntax.h"

using namespace tprt;
using namespace tprt::text;

/// A bound of the backtracking of all matches in a text, in ICU's unit of
/// 10,000 steps: 10 million steps, and 100 more for each unit of the text.
static int32_t getMaxSteps(size_t size) { return 1000 + size / 100; }

using OwnedRegex = std::shared_ptr<URegularExpression>;

static OwnedRegex own(URegularExpression *regex) {
  return OwnedRegex(regex, [](URegularExpression *r) {
    if (r)
      Icu::get().closeRegex(r);
  });
}

Pattern::Pattern(const Component &component) {
  if (component.has("String"))
    literal = toUtf16(component["String"].getString());
  else if (component.has("Regex"))
    *this = makeRegex(component["Regex"].getString(), component.getPath());
  else
    component.fail("expected a 'String' or a 'Regex'");
}

Pattern Pattern::makeLiteral(std::u16string_view literal) {
  Pattern pattern;
  pattern.literal = literal;
  return pattern;
}

Pattern Pattern::makeRegex(const std::string &regex, const std::string &path) {
  Pattern pattern;
  pattern.compile(regex, path);
  return pattern;
}

void Pattern::compile(const std::string &expression,
                      const std::string &itsPath) {
  const Icu &icu = Icu::get();
  path = itsPath;
  try {
    std::u16string translated = translateRegex(toUtf16(expression));
    UErrorCode status = U_ZERO_ERROR;
    UParseError position;
    regex = own(icu.openRegex(translated.data(), translated.size(),
                              UREGEX_MULTILINE | UREGEX_UNIX_LINES, &position,
                              &status));
    if (U_FAILURE(status))
      throw inputError(icu.getErrorName(status));
  } catch (const Error &error) {
    throw inputError(path + ": the regular expression '" + expression +
                     "' isn't supported: " + error.what());
  }
}

std::vector<Match> Pattern::find(std::u16string_view units) const {
  if (units.empty())
    return {};
  return regex ? findRegex(units) : findLiteral(units);
}

/// Adds a match, and what is between it and the one before.
static void addMatch(std::vector<Match> &matches, size_t begin, size_t end) {
  size_t last = matches.empty() ? 0 : matches.back().end;
  if (last < begin)
    matches.push_back({last, begin, false});
  matches.push_back({begin, end, true});
}

static void addRest(std::vector<Match> &matches, size_t size) {
  size_t last = matches.empty() ? 0 : matches.back().end;
  if (last < size)
    matches.push_back({last, size, false});
}

std::vector<Match> Pattern::findLiteral(std::u16string_view units) const {
  std::vector<Match> matches;
  if (literal.empty()) // is between all code points
    forEachCodePoint(units, [&](char32_t, size_t begin, size_t) {
      addMatch(matches, begin, begin);
    });
  else
    for (size_t i = 0; (i = units.find(literal, i)) != units.npos;
         i += literal.size())
      addMatch(matches, i, i + literal.size());
  addRest(matches, units.size());
  if (literal.empty())
    addMatch(matches, units.size(), units.size());
  return matches;
}

std::vector<Match> Pattern::findRegex(std::u16string_view units) const {
  const Icu &icu = Icu::get();
  UErrorCode status = U_ZERO_ERROR;
  // An object has the state of one search. Copies don't have its limit.
  OwnedRegex search = own(icu.cloneRegex(regex.get(), &status));
  icu.setTimeLimit(search.get(), getMaxSteps(units.size()), &status);
  icu.setText(search.get(), units.data(), units.size(), &status);
  std::vector<Match> matches;
  while (icu.findNext(search.get(), &status)) {
    size_t begin = icu.getStart(search.get(), 0, &status);
    size_t end = icu.getEnd(search.get(), 0, &status);
    // An empty match may not directly follow another match.
    if (begin == end && !matches.empty() && matches.back().end == begin)
      continue;
    addMatch(matches, begin, end);
  }
  if (U_FAILURE(status))
    throw inputError(path +
                     ": the regular expression needs too many steps, "
                     "or too much memory, for the text: " +
                     icu.getErrorName(status));
  addRest(matches, units.size());
  return matches;
}

void text::replaceAll(Text &text, const Pattern &pattern,
                      std::u16string_view content) {
  Text replaced;
  auto add = [&](std::u16string_view units, size_t numInitial) {
    checkTextSize(replaced.units.size() + units.size());
    replaced.units += units;
    replaced.numInitial += numInitial;
  };
  for (const auto &[begin, end, matches] : pattern.find(text.units)) {
    if (!matches) {
      Text kept = text.slice(begin, end);
      add(kept.units, kept.numInitial);
      continue;
    }
    // The content stands for the last unit that it replaces.
    bool isInitial = text.numInitial > 0 && end <= text.numInitial;
    add(content, isInitial ? content.size() : 0);
  }
  text = std::move(replaced);
}
