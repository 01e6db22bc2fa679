//===- CharacterClasses.h - Properties of code points -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_CHARACTERCLASSES_H
#define TPRT_LIB_TEXT_CHARACTERCLASSES_H

#include <string>

namespace tprt::text {

/// Unicode's White_Space.
bool isWhitespace(char32_t codePoint);
/// What \w matches by Unicode's technical standard 18, annex C: letters, marks,
/// decimal digits, connectors and joiners.
bool isWord(char32_t codePoint);
/// The categories Nd, Nl and No.
bool isNumber(char32_t codePoint);
/// The categories P*, and all punctuation of ASCII, "$" and "+" too.
bool isPunctuation(char32_t codePoint);
/// The categories C*.
bool isControl(char32_t codePoint);
/// The categories M*.
bool isMark(char32_t codePoint);
/// The category Mn.
bool isNonspacingMark(char32_t codePoint);
/// Has the ranges that BERT's tokenizer takes for Chinese characters.
bool isIdeograph(char32_t codePoint);

/// Appends the lower case of a code point, which doesn't depend on others.
void appendLower(std::u16string &units, char32_t codePoint);

enum class NormalizationForm { NFC, NFD, NFKC, NFKD };
std::u16string normalize(std::u16string_view units, NormalizationForm form);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_CHARACTERCLASSES_H
