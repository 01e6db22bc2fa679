//===- CharacterClasses.cpp - Properties of code points -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/CharacterClasses.h"

#include "text/Text.h"
#include "tprt/Error.h"

using namespace tprt;
using namespace tprt::text;

static bool hasCategory(char32_t codePoint, uint32_t mask) {
  return U_MASK(Icu::get().getCategory(codePoint)) & mask;
}

bool text::isWhitespace(char32_t codePoint) {
  return Icu::get().hasProperty(codePoint, UCHAR_WHITE_SPACE);
}

bool text::isWord(char32_t codePoint) {
  return hasCategory(codePoint, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         Icu::get().hasProperty(codePoint, UCHAR_ALPHABETIC) ||
         Icu::get().hasProperty(codePoint, UCHAR_JOIN_CONTROL);
}

bool text::isNumber(char32_t codePoint) {
  return hasCategory(codePoint, U_GC_N_MASK);
}

bool text::isPunctuation(char32_t codePoint) {
  if (codePoint < 0x80)
    return codePoint > ' ' && codePoint < 0x7F &&
           !hasCategory(codePoint, U_GC_L_MASK | U_GC_ND_MASK);
  return hasCategory(codePoint, U_GC_P_MASK);
}

bool text::isControl(char32_t codePoint) {
  return hasCategory(codePoint, U_GC_C_MASK);
}

bool text::isMark(char32_t codePoint) {
  return hasCategory(codePoint, U_GC_M_MASK);
}

bool text::isNonspacingMark(char32_t codePoint) {
  return hasCategory(codePoint, U_GC_MN_MASK);
}

bool text::isIdeograph(char32_t codePoint) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range ranges[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
                              {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                              {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                              {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  for (const Range &range : ranges)
    if (codePoint >= range.first && codePoint <= range.last)
      return true;
  return false;
}

void text::appendLower(std::u16string &units, char32_t codePoint) {
  // The only one whose lower case, in SpecialCasing.txt, has two code points
  // in every language and context.
  constexpr char32_t capitalIWithDot = 0x130;
  if (codePoint == capitalIWithDot)
    units += u"i\u0307";
  else
    append(units, Icu::get().toLower(codePoint));
}

static const UNormalizer2 *getInstance(NormalizationForm form,
                                       UErrorCode &status) {
  const Icu &icu = Icu::get();
  switch (form) {
  case NormalizationForm::NFC:
    return icu.getNfc(&status);
  case NormalizationForm::NFD:
    return icu.getNfd(&status);
  case NormalizationForm::NFKC:
    return icu.getNfkc(&status);
  case NormalizationForm::NFKD:
    return icu.getNfkd(&status);
  }
  return nullptr;
}

std::u16string text::normalize(std::u16string_view units,
                               NormalizationForm form) {
  const Icu &icu = Icu::get();
  std::u16string normalized(units.size(), 0);
  for (;;) {
    UErrorCode status = U_ZERO_ERROR;
    const UNormalizer2 *instance = getInstance(form, status);
    int32_t size = icu.normalize(instance, units.data(), units.size(),
                                 normalized.data(), normalized.size(), &status);
    normalized.resize(size);
    if (status == U_BUFFER_OVERFLOW_ERROR)
      continue;
    if (U_FAILURE(status))
      throw inputError(std::string("ICU can't normalize the text: ") +
                       icu.getErrorName(status));
    return normalized;
  }
}
