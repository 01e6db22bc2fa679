//===- AddedTokens.h - Tokens found before the model runs -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_ADDEDTOKENS_H
#define TPRT_LIB_TEXT_ADDEDTOKENS_H

#include "text/Model.h"
#include "text/Normalizer.h"
#include "text/Trie.h"

#include <set>

namespace tprt::text {

/// Text, or an added token.
struct Segment {
  Text text;
  std::optional<int64_t> id;
};

/// The tokens that are found in the input as they are, such as "<s>", or a
/// word that was added to a vocabulary.
class AddedTokens {
public:
  /// Reads `added_tokens`. `normalizer` may be empty.
  AddedTokens(const Component &component, const Vocabulary &vocabulary,
              const Normalizer &normalizer);

  /// Splits the input at the tokens that are looked for in it, or the
  /// normalized input at those that are looked for there.
  void splitInput(const Text &text, std::vector<Segment> &segments) const {
    split(text, inInput, segments);
  }
  void splitNormalized(const Text &text, std::vector<Segment> &segments) const {
    split(text, inNormalized, segments);
  }

  std::optional<int64_t> getId(const std::string &content) const;
  /// What decoding takes for an id, or null: the token as it was found, so
  /// that the decoder can undo the normalization.
  const std::string *getToken(int64_t id) const;
  bool isSpecial(const std::string &token) const {
    return special.contains(token);
  }
  /// How many aren't in the model's vocabulary.
  size_t getNumNew() const { return numNew; }

private:
  struct Token {
    std::string text;
    bool isSingleWord, stripsLeft, stripsRight;
  };

  void add(const Component &component, const Vocabulary &vocabulary,
           const Normalizer &normalizer);
  void split(const Text &text, const Trie<char16_t> &trie,
             std::vector<Segment> &segments) const;

  std::unordered_map<std::string, int64_t> ids;
  std::unordered_map<int64_t, Token> tokens;
  std::set<std::string> special;
  Trie<char16_t> inInput, inNormalized;
  size_t numNew = 0;
};

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_ADDEDTOKENS_H
