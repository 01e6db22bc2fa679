//===- RegexSyntax.cpp - Oniguruma's regular expressions for ICU ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/RegexSyntax.h"

#include "text/Text.h"
#include "tprt/Error.h"

#include <algorithm>

using namespace tprt;
using namespace tprt::text;

namespace {

class Translator {
public:
  explicit Translator(std::u16string_view regex) : regex(regex) {}

  std::u16string run() {
    while (!atEnd())
      translateNext();
    if (setDepth > 0)
      throw inputError("a '[' isn't closed");
    // ICU refuses an empty expression.
    return regex.empty() ? u"(?:)" : std::move(result);
  }

private:
  bool atEnd() const { return next == regex.size(); }
  bool isNext(std::u16string_view text) const {
    return regex.substr(next).starts_with(text);
  }
  void copy(size_t count) {
    result += regex.substr(next, count);
    next += count;
  }
  [[noreturn]] void refuse(size_t count) const {
    throw inputError("'" + toUtf8(regex.substr(next, count)) +
                     "' may mean something else to ICU");
  }

  void translateNext() {
    if (isNext(u"\\"))
      translateEscape();
    else if (isNext(u"["))
      openSet();
    else if (setDepth > 0)
      translateInSet();
    else if (isNext(u"("))
      translateGroup();
    else if (isNext(u"{"))
      translateRepetition();
    else if (isNext(u"*") || isNext(u"+") || isNext(u"?"))
      translateQuantifier();
    else if (isNext(u"]"))
      refuse(1);
    else
      copy(1);
  }

  void translateEscape() {
    if (next + 1 == regex.size())
      throw inputError("it ends with '\\'");
    char16_t escaped = regex[next + 1];
    bool isAlphanumeric = escaped < 0x80 && std::isalnum(escaped);
    if (!isAlphanumeric)
      return copy(2);
    switch (escaped) {
    case 'w':
    case 'W':
      result += escaped == 'w' ? u"[" : u"[^";
      result += u"\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
      if (setDepth == 0) // Oniguruma's table of Latin-1
        result += u"\\u00B2\\u00B3\\u00B9\\u00BC-\\u00BE";
      result += u"]";
      next += 2;
      return;
    case 'p':
    case 'P':
      return translateProperty();
    case 'A':
    case 'z':
      if (setDepth > 0)
        refuse(2);
      return copy(2);
    case 'x':
      return copyDigits(2);
    case 'u':
      return copyDigits(4);
    }
    if (std::u16string_view(u"sSdDnrtfe").find(escaped) == regex.npos)
      refuse(2);
    copy(2);
  }

  /// Copies a \x or \u with exactly `count` digits.
  void copyDigits(size_t count) {
    std::u16string_view digits = regex.substr(next + 2, count);
    bool areDigits = std::all_of(digits.begin(), digits.end(), [](char16_t c) {
      return c < 0x80 && std::isxdigit(c);
    });
    if (digits.size() < count || !areDigits)
      refuse(2 + count);
    copy(2 + count);
  }

  /// Copies \p{…}. Oniguruma has POSIX classes of these names.
  void translateProperty() {
    static constexpr std::u16string_view posix[] = {
        u"alnum", u"blank", u"cntrl", u"graph", u"print",
        u"punct", u"word",  u"ascii", u"xdigit"};
    size_t end = regex.find(u'}', next);
    if (next + 2 == regex.size() || regex[next + 2] != u'{' ||
        end == regex.npos)
      refuse(2);
    std::u16string name;
    for (char16_t c : regex.substr(next + 3, end - next - 3)) {
      bool isLetter = c < 0x80 && std::isalpha(c);
      if (!isLetter && c != u'_' && c != u' ')
        refuse(end + 1 - next);
      if (isLetter)
        name += static_cast<char16_t>(std::tolower(c));
    }
    if (std::find(std::begin(posix), std::end(posix), name) != std::end(posix))
      refuse(end + 1 - next);
    copy(end + 1 - next);
  }

  void openSet() {
    if (isNext(u"[:"))
      refuse(2);
    ++setDepth;
    copy(isNext(u"[^") ? 2 : 1);
    if (isNext(u"]"))
      throw inputError("a set is empty, or ']' isn't escaped");
  }

  void translateInSet() {
    if (isNext(u"]"))
      --setDepth;
    else if (isNext(u"&&"))
      return copy(2);
    else if (isNext(u"--"))
      refuse(2);
    else if (regex[next] < 0x80 && std::ispunct(regex[next]) && !isNext(u"-"))
      result += u'\\';
    copy(1);
  }

  void translateGroup() {
    static constexpr std::u16string_view groups[] = {
        u"(?:", u"(?=", u"(?!", u"(?<=", u"(?<!", u"(?>", u"(?i:", u"(?-i:"};
    if (next == 0 && isNext(u"(?i)"))
      return copy(4);
    if (!isNext(u"(?"))
      return copy(1);
    for (std::u16string_view group : groups)
      if (isNext(group))
        return copy(group.size());
    refuse(4);
  }

  /// Copies {n}, {n,} and {n,m}, and a '?' behind the last two. In Ruby, {n}?
  /// makes the repetition optional, and {n,m}+ repeats it.
  void translateRepetition() {
    size_t end = regex.find(u'}', next);
    if (end == regex.npos)
      refuse(1);
    std::u16string_view counts = regex.substr(next + 1, end - next - 1);
    auto isDigit = [](char16_t c) { return c >= u'0' && c <= u'9'; };
    size_t comma = std::min(counts.find(u','), counts.size());
    std::u16string_view most =
        counts.substr(std::min(comma + 1, counts.size()));
    if (comma == 0 || comma > 5 || most.size() > 5 ||
        !std::all_of(counts.begin(), counts.begin() + comma, isDigit) ||
        !std::all_of(most.begin(), most.end(), isDigit))
      refuse(end + 1 - next);
    copy(end + 1 - next);
    bool isExact = comma == counts.size();
    if (isNext(u"?") && !isExact)
      copy(1);
    refuseQuantifier();
  }

  void translateQuantifier() {
    copy(1);
    if (isNext(u"?") || isNext(u"+"))
      copy(1);
    refuseQuantifier();
  }

  void refuseQuantifier() const {
    if (!atEnd() &&
        std::u16string_view(u"*+?{").find(regex[next]) != regex.npos)
      refuse(1);
  }

  const std::u16string_view regex;
  std::u16string result;
  size_t next = 0;
  int setDepth = 0;
};

} // namespace

std::u16string text::translateRegex(const std::u16string &regex) {
  return Translator(regex).run();
}
