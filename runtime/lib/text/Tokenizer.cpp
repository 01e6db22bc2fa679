//===- Tokenizer.cpp - Text to tokens, and tokens to text -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Tokenizer.h"

#include "text/AddedTokens.h"
#include "text/Decoder.h"
#include "text/PostProcessor.h"
#include "text/PreTokenizer.h"
#include "tprt/File.h"

using namespace tprt;
using namespace tprt::text;

struct Tokenizer::Parts {
  Normalizer normalizer;     ///< may be empty
  PreTokenizer preTokenizer; ///< may be empty
  OwnedModel model;
  AddedTokens addedTokens;
  PostProcessor postProcessor;
  Decoder decoder;

  explicit Parts(const Component &file)
      : normalizer(file.has("normalizer") ? readNormalizer(file["normalizer"])
                                          : nullptr),
        preTokenizer(file.has("pre_tokenizer")
                         ? readPreTokenizer(file["pre_tokenizer"])
                         : nullptr),
        model(readModel(file["model"])),
        addedTokens(file["added_tokens"], model->getVocabulary(), normalizer),
        postProcessor(file.has("post_processor")
                          ? readPostProcessor(file["post_processor"])
                          : PostProcessor()),
        decoder(file.has("decoder") ? readDecoder(file["decoder"])
                                    : makeDefaultDecoder()) {
    for (const auto &ids : {postProcessor.before, postProcessor.after})
      for (int64_t id : ids)
        if (!findToken(id))
          file["post_processor"].fail("the vocabulary has no token " +
                                      std::to_string(id));
  }

  /// What the decoder gets for an id, or null.
  const std::string *findToken(int64_t id) const {
    const std::string *token = addedTokens.getToken(id);
    return token ? token : model->getVocabulary().getToken(id);
  }

  std::vector<Segment> split(std::string_view utf8) const;
  void tokenize(Text text, std::vector<int64_t> &ids) const;
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts)
    : parts(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer> Tokenizer::load(const std::string &path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  try {
    Icu::get();
    nlohmann::json json = parseJson(asText(file->getBytes()));
    Component root(json, "");
    return std::unique_ptr<Tokenizer>(
        new Tokenizer(std::make_unique<Parts>(root)));
  } catch (const Error &error) {
    throw Error(error.getKind(), "'" + path + "': " + error.what());
  }
}

/// The added tokens of a text, and the normalized text between them.
std::vector<Segment> Tokenizer::Parts::split(std::string_view utf8) const {
  Text input{toUtf16(utf8)};
  if (!input.units.empty())
    input.numInitial = U16_IS_LEAD(input.units[0]) ? 2 : 1;
  std::vector<Segment> inInput, segments;
  addedTokens.splitInput(input, inInput);
  size_t normalizedSize = 0;
  for (Segment &segment : inInput) {
    if (segment.id) {
      segments.push_back(std::move(segment));
      continue;
    }
    if (normalizer)
      normalizer(segment.text);
    checkTextSize(normalizedSize += segment.text.units.size());
    addedTokens.splitNormalized(segment.text, segments);
  }
  return segments;
}

void Tokenizer::Parts::tokenize(Text text, std::vector<int64_t> &ids) const {
  std::vector<Text> pieces;
  pieces.push_back(std::move(text));
  if (preTokenizer)
    preTokenizer(pieces);
  for (const Text &piece : pieces)
    model->tokenize(toUtf8(piece.units), ids);
}

std::vector<int64_t> Tokenizer::encode(std::string_view utf8,
                                       bool addSpecialTokens) const {
  const auto &[before, after] = parts->postProcessor;
  std::vector<int64_t> ids;
  if (addSpecialTokens)
    ids = before;
  for (Segment &segment : parts->split(utf8)) {
    if (segment.id)
      ids.push_back(*segment.id);
    else
      parts->tokenize(std::move(segment.text), ids);
  }
  if (addSpecialTokens)
    ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> ids,
                              bool skipSpecialTokens) const {
  TextStream stream(*this, skipSpecialTokens);
  std::string text;
  for (int64_t id : ids)
    text += stream.push(id);
  return text + stream.finish();
}

int64_t Tokenizer::getVocabularySize() const {
  return parts->model->getVocabulary().size() + parts->addedTokens.getNumNew();
}

std::optional<int64_t> Tokenizer::getId(std::string_view token) const {
  std::string name(token);
  std::optional<int64_t> id = parts->addedTokens.getId(name);
  return id ? id : parts->model->getVocabulary().getId(name);
}

TextStream::TextStream(const Tokenizer &tokenizer, bool skipSpecialTokens)
    : tokenizer(tokenizer), skipSpecialTokens(skipSpecialTokens),
      decoding(std::make_unique<Decoding>(tokenizer.parts->decoder)) {}
TextStream::~TextStream() = default;
TextStream::TextStream(TextStream &&other) noexcept = default;

std::string TextStream::push(int64_t id) {
  const auto &parts = *tokenizer.parts;
  const std::string *token = parts.findToken(id);
  bool isSkipped =
      !token || (skipSpecialTokens && parts.addedTokens.isSpecial(*token));
  return isSkipped ? "" : decoding->push(*token);
}

std::string TextStream::finish() { return decoding->finish(); }
