//===- Model.cpp - From pieces of text to tokens --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/Model.h"

#include <cstdio>

using namespace tprt;
using namespace tprt::text;

void Vocabulary::add(const Component &component, const std::string &token,
                     int64_t id) {
  auto [entry, isNewToken] = ids.try_emplace(token, id);
  if (!isNewToken)
    component.fail("the token '" + token + "' is listed twice");
  auto [other, isNewId] = tokens.try_emplace(id, &entry->first);
  if (!isNewId)
    component.fail("the tokens '" + *other->second + "' and '" + token +
                   "' have the same id, " + std::to_string(id));
}

Vocabulary Vocabulary::read(const Component &component) {
  component.require(component.getValue().is_object(), "an object");
  Vocabulary vocabulary;
  for (const auto &[token, id] : component.getValue().items())
    vocabulary.add(component, token,
                   Component(id, component.getPath() + "['" + token + "']")
                       .getInteger(maxId));
  return vocabulary;
}

std::optional<int64_t> Vocabulary::getId(const std::string &token) const {
  auto found = ids.find(token);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

const std::string *Vocabulary::getToken(int64_t id) const {
  auto found = tokens.find(id);
  return found == tokens.end() ? nullptr : found->second;
}

ByteTokens::ByteTokens(const Vocabulary &vocabulary) {
  for (size_t byte = 0; byte < ids.size(); ++byte) {
    char token[sizeof "<0x00>"];
    std::snprintf(token, sizeof token, "<0x%02X>",
                  static_cast<unsigned>(byte & 0xFF));
    ids[byte] = vocabulary.getId(token);
  }
}

bool ByteTokens::append(std::string_view bytes,
                        std::vector<int64_t> &appended) const {
  for (unsigned char byte : bytes)
    if (!ids[byte])
      return false;
  for (unsigned char byte : bytes)
    appended.push_back(*ids[byte]);
  return true;
}

namespace {

/// Each piece is a token (https://huggingface.co/docs/tokenizers).
class WordLevelModel : public Model {
public:
  WordLevelModel(Vocabulary vocabulary, std::string unknown)
      : Model(std::move(vocabulary)), unknown(std::move(unknown)) {}

  void tokenize(std::string_view piece,
                std::vector<int64_t> &ids) const override {
    std::optional<int64_t> id = vocabulary.getId(std::string(piece));
    if (!id)
      id = vocabulary.getId(unknown);
    if (!id)
      throw inputError("the vocabulary has neither '" + std::string(piece) +
                       "' nor the unknown token '" + unknown + "'");
    ids.push_back(*id);
  }

private:
  const std::string unknown;
};

} // namespace

OwnedModel text::readWordLevelModel(const Component &component) {
  return std::make_unique<WordLevelModel>(Vocabulary::read(component["vocab"]),
                                          component["unk_token"].getString());
}

OwnedModel text::readModel(const Component &component) {
  using Reader = OwnedModel (*)(const Component &);
  static constexpr std::pair<const char *, Reader> readers[] = {
      {"BPE", readBpeModel},
      {"WordPiece", readWordPieceModel},
      {"Unigram", readUnigramModel},
      {"WordLevel", readWordLevelModel}};
  if (!component.has("type")) // files from before version 0.11 of `tokenizers`
    component.fail("missing 'type', expected 'BPE', 'WordPiece', 'Unigram' or "
                   "'WordLevel'; loading and saving the file with "
                   "`tokenizers` adds it");
  return component["type"].choose(readers)(component);
}
