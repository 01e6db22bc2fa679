//===- Pattern.h - What splits and replacements look for --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_PATTERN_H
#define TPRT_LIB_TEXT_PATTERN_H

#include "text/Component.h"
#include "text/Text.h"

#include <memory>

namespace tprt::text {

/// A range of units.
struct Match {
  size_t begin, end;
  bool matches;
};

/// A string or a regular expression.
class Pattern {
public:
  /// Reads {"String": …} or {"Regex": …}. Throws an input error for a regular
  /// expression that ICU and Oniguruma, which `tokenizers` uses, would
  /// understand differently; RegexSyntax.h says which these are.
  explicit Pattern(const Component &component);
  static Pattern makeLiteral(std::u16string_view literal);
  /// `path` begins diagnostics.
  static Pattern makeRegex(const std::string &regex, const std::string &path);

  /// Divides `units` into matches and what is between them. Matches may be
  /// empty. Throws an input error if a regular expression takes too many steps
  /// or too much memory.
  std::vector<Match> find(std::u16string_view units) const;

private:
  Pattern() = default;
  void compile(const std::string &regex, const std::string &path);
  std::vector<Match> findLiteral(std::u16string_view units) const;
  std::vector<Match> findRegex(std::u16string_view units) const;

  std::u16string literal;
  std::shared_ptr<URegularExpression> regex; ///< null for a literal
  std::string path;
};

/// Replaces all matches by `content`. Throws an input error if the text becomes
/// too large.
void replaceAll(Text &text, const Pattern &pattern,
                std::u16string_view content);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_PATTERN_H
