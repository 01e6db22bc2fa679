//===- Tokenizer.h - Text to tokens, and tokens to text ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file tokenizer.json of the library `tokenizers`
// (https://huggingface.co/docs/tokenizers), as models on the Hugging Face Hub
// have one. The ids and the text are those of the library, of version 0.23.
// docs/Runtime.md lists the components that are supported. Text is UTF-8.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_TOKENIZER_H
#define TPRT_TOKENIZER_H

#include "tprt/Error.h"

#include <memory>
#include <optional>
#include <span>

namespace tprt {

/// Several threads may use a tokenizer at the same time.
class TPRT_API Tokenizer {
public:
  /// Reads a file. Throws an input error that names the file, and:
  /// - for malformed JSON, the line and the column;
  /// - for a component that isn't supported, the component and its place;
  /// - if ICU, which is loaded when the first tokenizer is, isn't installed.
  static std::unique_ptr<Tokenizer> load(const std::string &path);
  ~Tokenizer();
  Tokenizer(const Tokenizer &) = delete;
  Tokenizer &operator=(const Tokenizer &) = delete;

  /// The ids of a text's tokens, with those that the file puts before and after
  /// a text if `addSpecialTokens`. Special tokens in the text, such as "</s>",
  /// are recognized. The file's truncation and padding aren't applied. Throws
  /// an input error if the text isn't UTF-8, if a regular expression takes too
  /// many steps, or if the text needs an unknown token that the model lacks.
  std::vector<int64_t> encode(std::string_view text,
                              bool addSpecialTokens = true) const;

  /// The text of tokens, without special ones if `skipSpecialTokens`. As in
  /// `tokenizers`, an id without a token has no text. Bytes that aren't UTF-8
  /// become U+FFFD.
  std::string decode(std::span<const int64_t> ids,
                     bool skipSpecialTokens = true) const;

  /// The number of tokens. Ids may be larger, if there are ids without a token.
  int64_t getVocabularySize() const;
  /// The id of a token, written as in the file: the byte-level "Ġthe", not
  /// " the".
  std::optional<int64_t> getId(std::string_view token) const;

private:
  friend class TextStream;
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts;
};

namespace text {
class Decoding;
}

/// The text of tokens that come one by one. What push() and finish() return is
/// complete UTF-8, and its concatenation is what Tokenizer::decode returns for
/// all tokens.
class TPRT_API TextStream {
public:
  /// The tokenizer must outlive the stream.
  explicit TextStream(const Tokenizer &tokenizer,
                      bool skipSpecialTokens = true);
  ~TextStream();
  TextStream(TextStream &&other) noexcept;
  TextStream &operator=(TextStream &&other) = delete;

  /// Appends a token. Returns the text that is now certain, which may be empty:
  /// part of a code point waits for the rest of it, for instance.
  std::string push(int64_t id);
  /// Returns the rest of the text. No token may follow.
  std::string finish();

private:
  const Tokenizer &tokenizer;
  const bool skipSpecialTokens;
  std::unique_ptr<text::Decoding> decoding;
};

} // namespace tprt

#endif // TPRT_TOKENIZER_H
