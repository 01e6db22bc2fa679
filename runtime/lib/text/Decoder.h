//===- Decoder.h - From tokens to text, as they come ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tokenizers` defines a decoder by what it makes of a list of all tokens.
// Here each step of a decoder gets the tokens one by one, and passes on what no
// later token changes. So the text of all tokens is the concatenation of what
// streaming yields, by construction.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_TEXT_DECODER_H
#define TPRT_LIB_TEXT_DECODER_H

#include "text/Component.h"

#include <functional>
#include <memory>

namespace tprt::text {

/// All or a part of a token's text. The parts of a token follow each other.
struct Part {
  std::string text;
  bool isFirst = true, isLast = true;
};

using Sink = std::function<void(Part)>;

/// A step of a decoder, with its state in one sequence of tokens.
class DecodingStep {
public:
  virtual ~DecodingStep() = default;
  virtual void push(Part part, const Sink &sink) = 0;
  /// There are no more tokens.
  virtual void finish(const Sink &) {}
};

/// Makes the steps for a new sequence of tokens.
using Decoder = std::function<std::vector<std::unique_ptr<DecodingStep>>()>;

/// Reads a component of `decoder`. Throws an input error for a type that isn't
/// supported.
Decoder readDecoder(const Component &component);
/// Puts spaces between tokens: for files without a decoder.
Decoder makeDefaultDecoder();

/// Text from tokens, by a decoder.
class Decoding {
public:
  explicit Decoding(const Decoder &decoder) : steps(decoder()) {}

  /// Returns the text that is certain with this token.
  std::string push(const std::string &token);
  /// Returns the rest of the text. No token may follow.
  std::string finish();

private:
  void push(size_t step, Part part, std::string &text);

  std::vector<std::unique_ptr<DecodingStep>> steps;
};

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_DECODER_H
