//===- Normalizer.cpp - What is done to text before it is split -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/Normalizer.h"

#include "text/ByteAlphabet.h"
#include "text/CharacterClasses.h"
#include "text/Pattern.h"
#include "text/PrecompiledMap.h"

using namespace tprt;
using namespace tprt::text;

using Reader = Normalizer (*)(const Component &);

static void changeForm(Text &text, NormalizationForm form) {
  std::u16string_view initial(text.units.data(), text.numInitial);
  size_t numInitial = normalize(initial, form).size();
  text.units = normalize(text.units, form);
  // Marks may have been composed with what follows.
  text.numInitial = std::min(numInitial, text.units.size());
}

template <NormalizationForm form>
static Normalizer readForm(const Component &) {
  return [](Text &text) { changeForm(text, form); };
}

static void makeLower(Text &text) {
  mapCodePoints(text, [](char32_t codePoint, std::u16string &units) {
    appendLower(units, codePoint);
  });
}

static void remove(Text &text, bool (*isRemoved)(char32_t)) {
  mapCodePoints(text, [&](char32_t codePoint, std::u16string &units) {
    if (!isRemoved(codePoint))
      append(units, codePoint);
  });
}

static Normalizer readReplace(const Component &component) {
  Pattern pattern(component["pattern"]);
  std::u16string content = toUtf16(component["content"].getString());
  return [=](Text &text) { replaceAll(text, pattern, content); };
}

static Normalizer readPrepend(const Component &component) {
  std::u16string prefix = toUtf16(component["prepend"].getString());
  return [=](Text &text) {
    if (!text.units.empty())
      prepend(text, prefix);
  };
}

static Normalizer readStrip(const Component &component) {
  bool left = component["strip_left"].getBool();
  bool right = component["strip_right"].getBool();
  return [=](Text &text) {
    size_t begin = text.units.size(), end = 0; // of what isn't white space
    forEachCodePoint(text.units,
                     [&](char32_t codePoint, size_t first, size_t last) {
                       if (isWhitespace(codePoint))
                         return;
                       begin = std::min(begin, first);
                       end = last;
                     });
    begin = left ? begin : 0;
    end = right ? std::max(begin, end) : text.units.size();
    text = text.slice(begin, end);
  };
}

/// The control characters that BERT's tokenizer takes for white space.
static bool isLineSpace(char32_t codePoint) {
  return codePoint == '\t' || codePoint == '\n' || codePoint == '\r';
}

static Normalizer readBert(const Component &component) {
  bool clean = component["clean_text"].getBool();
  bool separate = component["handle_chinese_chars"].getBool();
  bool lower = component["lowercase"].getBool();
  bool stripAccents = component.getBool("strip_accents", lower);
  return [=](Text &text) {
    mapCodePoints(text, [&](char32_t codePoint, std::u16string &units) {
      bool isSpace = isWhitespace(codePoint);
      constexpr char32_t replacement = 0xFFFD;
      if (clean && (codePoint == replacement ||
                    (isControl(codePoint) && !isLineSpace(codePoint))))
        return;
      bool isSeparated = separate && isIdeograph(codePoint);
      if (isSeparated)
        units += u' ';
      append(units, clean && isSpace ? U' ' : codePoint);
      if (isSeparated)
        units += u' ';
    });
    if (stripAccents) {
      changeForm(text, NormalizationForm::NFD);
      remove(text, isNonspacingMark);
    }
    if (lower)
      makeLower(text);
  };
}

static Normalizer readPrecompiled(const Component &component) {
  return [map = PrecompiledMap(component)](Text &text) { map.normalize(text); };
}

static Normalizer readSequence(const Component &component) {
  std::vector<Normalizer> normalizers;
  for (const Component &each : component["normalizers"].getList())
    normalizers.push_back(readNormalizer(each));
  return [=](Text &text) {
    for (const Normalizer &normalizer : normalizers)
      normalizer(text);
  };
}

Normalizer text::readNormalizer(const Component &component) {
  static constexpr std::pair<const char *, Reader> readers[] = {
      {"Sequence", readSequence},
      {"NFC", readForm<NormalizationForm::NFC>},
      {"NFD", readForm<NormalizationForm::NFD>},
      {"NFKC", readForm<NormalizationForm::NFKC>},
      {"NFKD", readForm<NormalizationForm::NFKD>},
      {"Lowercase", [](const Component &) -> Normalizer { return makeLower; }},
      {"Replace", readReplace},
      {"Prepend", readPrepend},
      {"Strip", readStrip},
      {"StripAccents",
       [](const Component &) -> Normalizer {
         return [](Text &text) { remove(text, isMark); };
       }},
      {"BertNormalizer", readBert},
      {"Precompiled", readPrecompiled},
      {"ByteLevel",
       [](const Component &) -> Normalizer { return encodeBytes; }}};
  return component["type"].choose(readers)(component);
}
