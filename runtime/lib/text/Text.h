//===- Text.h - Text on its way to tokens, and back -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_TEXT_H
#define TPRT_LIB_TEXT_TEXT_H

#include "text/Icu.h"

#include <functional>
#include <string>
#include <string_view>

namespace tprt::text {

/// A text's largest size, in bytes of UTF-8 or units of UTF-16. It bounds what
/// the replacements of a file can make of a short input.
inline constexpr size_t maxTextSize = size_t(1) << 24;

/// Throws an input error if a text of this size is too large.
void checkTextSize(size_t size);

/// A piece of the input in UTF-16, the encoding that ICU works on.
struct Text {
  std::u16string units;
  /// How many of the units, from the first on, come from the first code point
  /// of the whole input. Metaspace treats the piece that begins there
  /// differently.
  size_t numInitial = 0;

  bool empty() const { return units.empty(); }
  Text slice(size_t begin, size_t end) const;
};

/// Throws an input error that gives the offset of the first byte that isn't
/// UTF-8.
std::u16string toUtf16(std::string_view utf8);
/// `units` must have no lone surrogates.
std::string toUtf8(std::u16string_view units);

void append(std::u16string &units, char32_t codePoint);

/// Each maximal part of a code point that isn't complete becomes U+FFFD
/// (Unicode, 3.9, "U+FFFD Substitution of Maximal Subparts").
std::string replaceInvalid(std::string_view bytes);
/// The number of bytes at the end that may be the beginning of a code point.
size_t getIncompleteSize(std::string_view bytes);

/// Calls `function(codePoint, begin, end)` for each code point and its units.
template <typename Function>
void forEachCodePoint(std::u16string_view units, Function function) {
  for (size_t i = 0; i < units.size();) {
    size_t begin = i;
    char32_t codePoint = 0;
    U16_NEXT(units.data(), i, units.size(), codePoint);
    function(codePoint, begin, i);
  }
}

/// Calls `function(begin, end)` for each extended grapheme cluster (Unicode's
/// standard annex 29).
void forEachGrapheme(std::u16string_view units,
                     const std::function<void(size_t, size_t)> &function);

/// Inserts a prefix, which belongs to the text's first code point.
void prepend(Text &text, std::u16string_view prefix);

/// Replaces each code point by those that `map(codePoint, units)` appends.
void mapCodePoints(Text &text,
                   const std::function<void(char32_t, std::u16string &)> &map);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_TEXT_H
