//===- UnigramModel.cpp - The most probable tokens ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kudo: Subword Regularization, 2018 (https://arxiv.org/abs/1804.10959). A
// token's score is the logarithm of its probability. Of all ways to divide a
// piece into tokens, that with the largest sum of scores is found by dynamic
// programming. A code point without a token is unknown, with a score less than
// all others; unknown ones in a row are one token.
//
//===----------------------------------------------------------------------===//

#include "text/Model.h"

#include "text/Text.h"
#include "text/Trie.h"

#include <algorithm>

using namespace tprt;
using namespace tprt::text;

namespace {

class UnigramModel : public Model {
public:
  UnigramModel(Vocabulary vocabulary, std::vector<double> scores,
               std::optional<int64_t> unknown, bool fallsBackToBytes);

  void tokenize(std::string_view piece,
                std::vector<int64_t> &ids) const override;

private:
  /// The best way to the end of a token.
  struct Step {
    double score = 0; ///< of all tokens up to here
    size_t begin = SIZE_MAX;
    std::optional<int64_t> id; ///< nullopt: unknown
  };
  std::vector<Step> findBest(std::string_view piece) const;
  void append(std::string_view token, std::vector<int64_t> &ids) const;

  const std::vector<double> scores; ///< by id
  double unknownScore;
  const std::optional<int64_t> unknown;
  const bool fallsBackToBytes;
  const ByteTokens byteTokens;
  Trie<char> tokens;
};

} // namespace

UnigramModel::UnigramModel(Vocabulary itsVocabulary, std::vector<double> scores,
                           std::optional<int64_t> unknown,
                           bool fallsBackToBytes)
    : Model(std::move(itsVocabulary)), scores(std::move(scores)),
      unknown(unknown), fallsBackToBytes(fallsBackToBytes),
      byteTokens(vocabulary) {
  for (const auto &[token, id] : vocabulary.getIds())
    tokens.insert(token, id);
  constexpr double unknownPenalty = 10;
  unknownScore = std::numeric_limits<double>::infinity();
  for (double score : this->scores)
    unknownScore = std::min(unknownScore, score - unknownPenalty);
}

/// The steps by where they end.
std::vector<UnigramModel::Step>
UnigramModel::findBest(std::string_view piece) const {
  std::vector<Step> best(piece.size() + 1);
  for (size_t begin = 0, next; begin < piece.size(); begin = next) {
    next = begin;
    U8_FWD_1(piece.data(), next, piece.size());
    bool hasSingle = false;
    auto improve = [&](size_t end, double score, std::optional<int64_t> id) {
      Step &step = best[end];
      score += best[begin].score;
      if (step.begin == SIZE_MAX || score > step.score)
        step = {score, begin, id};
    };
    tokens.forEachPrefix(piece.substr(begin), tokens.root,
                         [&](size_t size, int64_t id) {
                           improve(begin + size, scores[id], id);
                           hasSingle |= begin + size == next;
                         });
    if (!hasSingle)
      improve(next, unknownScore, std::nullopt);
  }
  return best;
}

/// Appends the id of a token, or what stands for an unknown one.
void UnigramModel::append(std::string_view token,
                          std::vector<int64_t> &ids) const {
  if (std::optional<int64_t> id = vocabulary.getId(std::string(token))) {
    ids.push_back(*id);
    return;
  }
  if (fallsBackToBytes && byteTokens.append(token, ids))
    return;
  if (!unknown)
    throw inputError("the vocabulary has neither '" + std::string(token) +
                     "' nor an unknown token");
  ids.push_back(*unknown);
}

void UnigramModel::tokenize(std::string_view piece,
                            std::vector<int64_t> &ids) const {
  std::vector<Step> best = findBest(piece);
  std::vector<std::string_view> chosen; // from the end
  bool wasUnknown = false;
  for (size_t end = piece.size(); end > 0;) {
    const Step &step = best[end];
    bool isUnknown = !step.id || step.id == unknown;
    std::string_view token = piece.substr(step.begin, end - step.begin);
    if (isUnknown && wasUnknown)
      chosen.back() = {token.data(), token.size() + chosen.back().size()};
    else
      chosen.push_back(token);
    wasUnknown = isUnknown;
    end = step.begin;
  }
  for (size_t i = chosen.size(); i-- > 0;)
    append(chosen[i], ids);
}

OwnedModel text::readUnigramModel(const Component &component) {
  Component list = component["vocab"];
  list.require(list.getValue().is_array(), "a list");
  Vocabulary vocabulary;
  std::vector<double> scores;
  for (size_t i = 0; i < list.getValue().size(); ++i) {
    const Component::json &entry = list.getValue()[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number())
      list[i].fail("found " + entry.dump() +
                   ", expected a token and its score, such as [\"a\", -1.5]");
    vocabulary.add(list, entry[0].get<std::string>(), i);
    scores.push_back(entry[1].get<double>());
  }
  std::optional<int64_t> unknown;
  if (component.has("unk_id")) {
    if (scores.empty())
      list.fail("the vocabulary is empty");
    unknown = component["unk_id"].getInteger(scores.size() - 1);
  }
  return std::make_unique<UnigramModel>(
      std::move(vocabulary), std::move(scores), unknown,
      component.getBool("byte_fallback", false));
}
