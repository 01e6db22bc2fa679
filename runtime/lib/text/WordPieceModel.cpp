//===- WordPieceModel.cpp - Longest tokens first --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tokenizer of BERT (https://github.com/google-research/bert,
// tokenization.py): a piece's longest token, then the longest behind it. All
// but the first have a prefix in the vocabulary, usually "##".
//
//===----------------------------------------------------------------------===//

#include "text/Model.h"

#include "text/Text.h"
#include "text/Trie.h"

using namespace tprt;
using namespace tprt::text;

namespace {

class WordPieceModel : public Model {
public:
  WordPieceModel(Vocabulary itsVocabulary, std::string unknown,
                 const std::string &prefix, int64_t maxCodePoints)
      : Model(std::move(itsVocabulary)), unknown(std::move(unknown)),
        maxCodePoints(maxCodePoints) {
    for (const auto &[token, id] : vocabulary.getIds())
      tokens.insert(token, id);
    continuation = tokens.find(prefix);
  }

  void tokenize(std::string_view piece,
                std::vector<int64_t> &ids) const override;

private:
  const std::string unknown;
  const int64_t maxCodePoints;
  Trie<char> tokens;
  /// Where tokens that aren't the first begin.
  std::optional<Trie<char>::Node> continuation;
};

} // namespace

static int64_t countCodePoints(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(),
                       [](char byte) { return !U8_IS_TRAIL(byte); });
}

void WordPieceModel::tokenize(std::string_view piece,
                              std::vector<int64_t> &ids) const {
  size_t first = ids.size();
  bool isKnown = countCodePoints(piece) <= maxCodePoints;
  for (size_t begin = 0; isKnown && begin < piece.size();) {
    size_t longest = 0;
    int64_t id = 0;
    auto take = [&](size_t size, int64_t number) {
      longest = size;
      id = number;
    };
    if (begin == 0)
      tokens.forEachPrefix(piece, tokens.root, take);
    else if (continuation)
      tokens.forEachPrefix(piece.substr(begin), *continuation, take);
    isKnown = longest > 0;
    ids.push_back(id);
    begin += longest;
  }
  if (isKnown)
    return;
  ids.resize(first);
  std::optional<int64_t> id = vocabulary.getId(unknown);
  if (!id)
    throw inputError("the vocabulary has neither the tokens of '" +
                     std::string(piece) + "' nor the unknown token '" +
                     unknown + "'");
  ids.push_back(*id);
}

OwnedModel text::readWordPieceModel(const Component &component) {
  return std::make_unique<WordPieceModel>(
      Vocabulary::read(component["vocab"]), component["unk_token"].getString(),
      component["continuing_subword_prefix"].getString(),
      component["max_input_chars_per_word"].getInteger(INT64_MAX));
}
