//===- Text.cpp - Text on its way to tokens, and back ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/Text.h"

#include "tprt/Error.h"

#include <algorithm>
#include <memory>

using namespace tprt;
using namespace tprt::text;

void text::checkTextSize(size_t size) {
  if (size > maxTextSize)
    throw inputError("the tokenizer makes the text larger than " +
                     std::to_string(maxTextSize) + " units");
}

Text Text::slice(size_t begin, size_t end) const {
  size_t left = numInitial > begin ? numInitial - begin : 0;
  return {units.substr(begin, end - begin), std::min(left, end - begin)};
}

void text::append(std::u16string &units, char32_t codePoint) {
  if (codePoint <= 0xFFFF) {
    units += static_cast<char16_t>(codePoint);
    return;
  }
  units += static_cast<char16_t>(U16_LEAD(codePoint));
  units += static_cast<char16_t>(U16_TRAIL(codePoint));
}

std::u16string text::toUtf16(std::string_view utf8) {
  if (utf8.size() > maxTextSize)
    throw inputError("the text has " + std::to_string(utf8.size()) +
                     " bytes, at most " + std::to_string(maxTextSize) +
                     " are supported");
  std::u16string units;
  units.reserve(utf8.size());
  for (size_t i = 0; i < utf8.size();) {
    size_t begin = i;
    UChar32 codePoint = 0;
    U8_NEXT(utf8.data(), i, utf8.size(), codePoint);
    if (codePoint < 0)
      throw inputError("the text isn't UTF-8: invalid byte at offset " +
                       std::to_string(begin));
    append(units, codePoint);
  }
  return units;
}

static void appendUtf8(std::string &bytes, char32_t codePoint) {
  char encoded[U8_MAX_LENGTH];
  size_t size = 0;
  U8_APPEND_UNSAFE(encoded, size, codePoint);
  bytes.append(encoded, size);
}

std::string text::toUtf8(std::u16string_view units) {
  std::string bytes;
  bytes.reserve(units.size());
  forEachCodePoint(units, [&](char32_t codePoint, size_t, size_t) {
    appendUtf8(bytes, codePoint);
  });
  return bytes;
}

std::string text::replaceInvalid(std::string_view bytes) {
  std::string valid;
  valid.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    UChar32 codePoint = 0;
    U8_NEXT_OR_FFFD(bytes.data(), i, bytes.size(), codePoint);
    appendUtf8(valid, codePoint);
  }
  return valid;
}

size_t text::getIncompleteSize(std::string_view bytes) {
  auto complete = static_cast<int64_t>(bytes.size()); // may be less than two
  U8_TRUNCATE_IF_INCOMPLETE(bytes.data(), 0, complete);
  return bytes.size() - complete;
}

void text::forEachGrapheme(
    std::u16string_view units,
    const std::function<void(size_t, size_t)> &function) {
  const Icu &icu = Icu::get();
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<UBreakIterator, decltype(icu.closeBreaks)> breaks(
      icu.openBreaks(UBRK_CHARACTER, "", units.data(), units.size(), &status),
      icu.closeBreaks);
  if (U_FAILURE(status))
    throw inputError(std::string("ICU can't find the text's graphemes: ") +
                     icu.getErrorName(status));
  int32_t begin = 0;
  for (int32_t end; (end = icu.nextBreak(breaks.get())) != UBRK_DONE;
       begin = end)
    function(begin, end);
}

void text::prepend(Text &text, std::u16string_view prefix) {
  checkTextSize(text.units.size() + prefix.size());
  text.units.insert(0, prefix);
  if (text.numInitial > 0)
    text.numInitial += prefix.size();
}

void text::mapCodePoints(
    Text &text, const std::function<void(char32_t, std::u16string &)> &map) {
  Text mapped;
  mapped.units.reserve(text.units.size());
  forEachCodePoint(text.units, [&](char32_t codePoint, size_t begin, size_t) {
    map(codePoint, mapped.units);
    if (begin < text.numInitial)
      mapped.numInitial = mapped.units.size();
  });
  text = std::move(mapped);
}
