//===- RegexSyntax.h - Oniguruma's regular expressions for ICU --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The regular expressions of tokenizer.json are those of Oniguruma, in its
// syntax for Ruby. What is supported has the same meaning there and in ICU:
//
//   .  ^  $  \A  \z                 lines end with \n
//   |  (…)  (?:…)  (?i:…)  (?-i:…)  (?=…)  (?!…)  (?<=…)  (?<!…)  (?>…)
//   (?i)                            at the beginning
//   *  +  ?  {n}  {n,}  {n,m}       also followed by ?, the first three by +
//   \s  \S  \d  \D  \w  \W  \p{…}  \P{…}  \n  \r  \t  \f  \e  \xHH  \uHHHH
//   […]  [^…]                       also nested; with ranges and &&
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_TEXT_REGEXSYNTAX_H
#define TPRT_LIB_TEXT_REGEXSYNTAX_H

#include <string>

namespace tprt::text {

/// The same expression for ICU, which needs more escapes, and another \w:
/// without joiners, and outside of sets with Latin-1's superscripts and
/// fractions. Throws an input error that names what isn't supported.
std::u16string translateRegex(const std::u16string &regex);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_REGEXSYNTAX_H
