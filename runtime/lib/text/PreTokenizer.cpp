//===- PreTokenizer.cpp - Splitting text into the model's inputs ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/PreTokenizer.h"

#include "text/ByteAlphabet.h"
#include "text/CharacterClasses.h"
#include "text/Metaspace.h"
#include "text/Pattern.h"

using namespace tprt;
using namespace tprt::text;

namespace {

using Reader = PreTokenizer (*)(const Component &);
/// Divides a text, which it may change before.
using Finder = std::function<std::vector<Match>(Text &)>;

/// What becomes of the matches of a pattern.
enum class Behavior {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous
};

} // namespace

static Behavior readBehavior(const Component &component) {
  static constexpr std::pair<const char *, Behavior> behaviors[] = {
      {"Removed", Behavior::Removed},
      {"Isolated", Behavior::Isolated},
      {"MergedWithPrevious", Behavior::MergedWithPrevious},
      {"MergedWithNext", Behavior::MergedWithNext},
      {"Contiguous", Behavior::Contiguous}};
  return component.choose(behaviors);
}

/// Whether a piece doesn't end between the neighbors `left` and `right`. Of
/// several matches in a row, only the outermost joins what isn't a match:
/// the first joins what is before it, the last what is behind it.
static bool areJoined(const std::vector<Match> &matches, size_t right,
                      Behavior behavior) {
  bool isLeftMatch = matches[right - 1].matches;
  bool isRightMatch = matches[right].matches;
  switch (behavior) {
  case Behavior::Removed:
  case Behavior::Isolated:
    return false;
  case Behavior::MergedWithPrevious:
    return !isLeftMatch && isRightMatch;
  case Behavior::MergedWithNext:
    return isLeftMatch && !isRightMatch;
  case Behavior::Contiguous:
    return isLeftMatch == isRightMatch;
  }
  return false;
}

static PreTokenizer makeSplit(Finder find, Behavior behavior) {
  return [find = std::move(find), behavior](std::vector<Text> &pieces) {
    std::vector<Text> split;
    for (Text &piece : pieces) {
      std::vector<Match> matches = find(piece);
      for (size_t i = 0, last; i < matches.size(); i = last + 1) {
        last = i;
        while (last + 1 < matches.size() &&
               areJoined(matches, last + 1, behavior))
          ++last;
        bool isRemoved = behavior == Behavior::Removed && matches[i].matches;
        if (!isRemoved && matches[i].begin < matches[last].end)
          split.push_back(piece.slice(matches[i].begin, matches[last].end));
      }
    }
    pieces = std::move(split);
  };
}

/// Finds single code points.
template <bool (*isMatch)(char32_t)>
static std::vector<Match> findCodePoints(Text &text) {
  std::vector<Match> matches;
  forEachCodePoint(text.units,
                   [&](char32_t codePoint, size_t begin, size_t end) {
                     bool isFound = isMatch(codePoint);
                     if (isFound || matches.empty() || matches.back().matches)
                       matches.push_back({begin, end, isFound});
                     else
                       matches.back().end = end;
                   });
  return matches;
}

static PreTokenizer makeSequence(std::vector<PreTokenizer> steps) {
  return [steps = std::move(steps)](std::vector<Text> &pieces) {
    for (const PreTokenizer &step : steps)
      step(pieces);
  };
}

static PreTokenizer readSequence(const Component &component) {
  std::vector<PreTokenizer> steps;
  for (const Component &each : component["pretokenizers"].getList())
    steps.push_back(readPreTokenizer(each));
  return makeSequence(std::move(steps));
}

static PreTokenizer readByteLevel(const Component &component) {
  // GPT-2's (https://github.com/openai/gpt-2, encoder.py).
  static const Pattern words = Pattern::makeRegex(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      "ByteLevel");
  bool addsSpace = component["add_prefix_space"].getBool();
  bool splits = component.getBool("use_regex", true);
  auto find = [=](Text &text) {
    if (addsSpace && !text.units.starts_with(u' '))
      prepend(text, u" ");
    return splits ? words.find(text.units)
                  : std::vector<Match>{{0, text.units.size(), false}};
  };
  auto encode = [](std::vector<Text> &pieces) {
    for (Text &piece : pieces)
      encodeBytes(piece);
  };
  return makeSequence({makeSplit(find, Behavior::Isolated), encode});
}

static PreTokenizer readSplit(const Component &component) {
  Pattern pattern(component["pattern"]);
  bool inverts = component["invert"].getBool();
  auto find = [=](Text &text) {
    std::vector<Match> matches = pattern.find(text.units);
    for (Match &match : matches)
      match.matches = match.matches != inverts;
    return matches;
  };
  return makeSplit(find, readBehavior(component["behavior"]));
}

/// Words, and runs of what is neither in a word nor white space.
static PreTokenizer readWhitespace(const Component &) {
  auto find = [](Text &text) {
    enum class Kind { Space, Word, Other };
    std::vector<Match> matches;
    Kind last = Kind::Space;
    forEachCodePoint(text.units,
                     [&](char32_t codePoint, size_t begin, size_t end) {
                       Kind kind = isWord(codePoint)         ? Kind::Word
                                   : isWhitespace(codePoint) ? Kind::Space
                                                             : Kind::Other;
                       if (matches.empty() || kind != last)
                         matches.push_back({begin, end, kind == Kind::Space});
                       else
                         matches.back().end = end;
                       last = kind;
                     });
    return matches;
  };
  return makeSplit(find, Behavior::Removed);
}

static PreTokenizer readWhitespaceSplit(const Component &) {
  return makeSplit(findCodePoints<isWhitespace>, Behavior::Removed);
}

static PreTokenizer readMetaspace(const Component &component) {
  Metaspace metaspace = readMetaspaceOptions(component);
  bool splits = component.getBool("split", true);
  Pattern space = Pattern::makeLiteral(u" ");
  Pattern marker = Pattern::makeLiteral(metaspace.marker);
  auto find = [=](Text &text) {
    replaceAll(text, space, metaspace.marker);
    bool isPrepended =
        metaspace.prepend == Metaspace::Prepend::Always ||
        (metaspace.prepend == Metaspace::Prepend::First && text.numInitial > 0);
    if (isPrepended && !text.units.starts_with(metaspace.marker))
      prepend(text, metaspace.marker);
    return splits ? marker.find(text.units)
                  : std::vector<Match>{{0, text.units.size(), false}};
  };
  return makeSplit(find, Behavior::MergedWithNext);
}

static PreTokenizer readDigits(const Component &component) {
  bool areSeparate = component["individual_digits"].getBool();
  return makeSplit(findCodePoints<isNumber>,
                   areSeparate ? Behavior::Isolated : Behavior::Contiguous);
}

static PreTokenizer readPunctuation(const Component &component) {
  return makeSplit(findCodePoints<isPunctuation>,
                   component.has("behavior")
                       ? readBehavior(component["behavior"])
                       : Behavior::Isolated);
}

static PreTokenizer readBert(const Component &component) {
  return makeSequence(
      {readWhitespaceSplit(component),
       makeSplit(findCodePoints<isPunctuation>, Behavior::Isolated)});
}

static PreTokenizer readDelimiter(const Component &component) {
  Pattern delimiter =
      Pattern::makeLiteral(readCodePoint(component["delimiter"]));
  return makeSplit([=](Text &text) { return delimiter.find(text.units); },
                   Behavior::Removed);
}

PreTokenizer text::readPreTokenizer(const Component &component) {
  static constexpr std::pair<const char *, Reader> readers[] = {
      {"Sequence", readSequence},
      {"ByteLevel", readByteLevel},
      {"Split", readSplit},
      {"Whitespace", readWhitespace},
      {"WhitespaceSplit", readWhitespaceSplit},
      {"Metaspace", readMetaspace},
      {"Digits", readDigits},
      {"Punctuation", readPunctuation},
      {"BertPreTokenizer", readBert},
      {"CharDelimiterSplit", readDelimiter}};
  return component["type"].choose(readers)(component);
}
