//===- Decoder.cpp - From tokens to text, as they come --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/Decoder.h"

#include "text/ByteAlphabet.h"
#include "text/Metaspace.h"
#include "text/Pattern.h"

#include <charconv>

using namespace tprt;
using namespace tprt::text;

namespace {

using Reader = Decoder (*)(const Component &);

/// A step that needs whole tokens.
class TokenStep : public DecodingStep {
public:
  void push(Part part, const Sink &sink) final {
    if (part.isFirst)
      token.clear();
    token += part.text;
    if (token.size() > maxTextSize)
      throw inputError("the text is larger than " +
                       std::to_string(maxTextSize) + " bytes");
    if (part.isLast)
      pushToken(std::exchange(token, {}), sink);
  }

protected:
  virtual void pushToken(std::string token, const Sink &sink) = 0;

private:
  std::string token;
};

/// A step that changes each token by itself, but perhaps the first in another
/// way.
class MapStep : public TokenStep {
public:
  using Map = std::function<std::string(std::string token, bool isFirst)>;
  explicit MapStep(Map map) : map(std::move(map)) {}

private:
  void pushToken(std::string token, const Sink &sink) override {
    sink({map(std::move(token), std::exchange(isFirst, false))});
  }

  const Map map;
  bool isFirst = true;
};

/// All tokens are one, of which the characters stand for bytes.
class ByteLevelStep : public TokenStep {
  void pushToken(std::string token, const Sink &sink) override {
    bytes += decodeBytes(token).value_or(token);
    size_t complete = bytes.size() - getIncompleteSize(bytes);
    sink({replaceInvalid({bytes.data(), complete}),
          std::exchange(isFirst, false), false});
    bytes.erase(0, complete);
  }
  void finish(const Sink &sink) override {
    sink({replaceInvalid(bytes), isFirst, true});
  }

  std::string bytes;
  bool isFirst = true;
};

/// Tokens <0xHH> in a row are UTF-8, or one U+FFFD for each.
class ByteFallbackStep : public TokenStep {
  void pushToken(std::string token, const Sink &sink) override {
    uint8_t byte = 0;
    bool isByte =
        token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
    if (isByte) {
      auto [end, error] =
          std::from_chars(&token[3], &token[5], byte, /*base=*/16);
      isByte = error == std::errc() && end == &token[5];
    }
    if (isByte) {
      bytes += static_cast<char>(byte);
      return;
    }
    finish(sink);
    sink({std::move(token)});
  }
  void finish(const Sink &sink) override {
    std::string text = replaceInvalid(bytes);
    if (text == bytes) {
      if (!text.empty())
        sink({std::move(text)});
    } else {
      for (size_t i = 0; i < bytes.size(); ++i)
        sink({"\uFFFD"});
    }
    bytes.clear();
  }

  std::string bytes;
};

/// All tokens are one.
class FuseStep : public DecodingStep {
  void push(Part part, const Sink &sink) override {
    sink({std::move(part.text), std::exchange(isFirst, false), false});
  }
  void finish(const Sink &sink) override { sink({"", isFirst, true}); }

  bool isFirst = true;
};

/// Removes up to so many characters from the beginning and the end of each
/// token, if they are `content`.
class StripStep : public DecodingStep {
public:
  StripStep(std::string content, int64_t start, int64_t stop)
      : content(std::move(content)), start(start), stop(stop) {}

private:
  void push(Part part, const Sink &sink) override {
    if (part.isFirst) {
      numLeft = start;
      numHeld = 0;
    }
    std::string_view rest = part.text;
    std::string text;
    while (numLeft > 0 && !rest.empty()) {
      if (rest.starts_with(content)) {
        rest.remove_prefix(content.size());
        --numLeft;
      } else {
        numLeft = 0;
      }
    }
    // What may be the token's end is held back.
    int64_t numAtEnd = 0;
    while (numAtEnd < stop && rest.ends_with(content)) {
      rest.remove_suffix(content.size());
      ++numAtEnd;
    }
    int64_t numCertain = rest.empty()
                             ? std::max<int64_t>(0, numHeld + numAtEnd - stop)
                             : numHeld;
    numHeld += numAtEnd - numCertain;
    for (; numCertain > 0; --numCertain)
      text += content;
    text += rest;
    if (part.isLast)
      numHeld = 0;
    sink({std::move(text), part.isFirst, part.isLast});
  }

  const std::string content;
  const int64_t start, stop;
  int64_t numLeft = 0, numHeld = 0;
};

/// A suffix marks the end of a word: a space, but not at the end of the text.
class SuffixStep : public TokenStep {
public:
  explicit SuffixStep(const std::string &suffix)
      : pattern(Pattern::makeLiteral(toUtf16(suffix))) {}

private:
  void pushToken(std::string token, const Sink &sink) override {
    emit(u" ", sink);
    last = std::move(token);
  }
  void finish(const Sink &sink) override { emit(u"", sink); }

  void emit(std::u16string_view replacement, const Sink &sink) {
    if (!last)
      return;
    Text text{toUtf16(*last)};
    replaceAll(text, pattern, replacement);
    sink({toUtf8(text.units)});
  }

  const Pattern pattern;
  std::optional<std::string> last;
};

} // namespace

template <typename Step, typename... Arguments>
static Decoder makeDecoder(const Arguments &...arguments) {
  return [=] {
    std::vector<std::unique_ptr<DecodingStep>> steps;
    steps.push_back(std::make_unique<Step>(arguments...));
    return steps;
  };
}

static Decoder readMetaspace(const Component &component) {
  Metaspace metaspace = readMetaspaceOptions(component);
  Pattern marker = Pattern::makeLiteral(metaspace.marker);
  bool isPrepended = metaspace.prepend != Metaspace::Prepend::Never;
  return makeDecoder<MapStep>([=](const std::string &token, bool isFirst) {
    Text text{toUtf16(token)};
    replaceAll(text, marker, isFirst && isPrepended ? u"" : u" ");
    return toUtf8(text.units);
  });
}

static Decoder readReplace(const Component &component) {
  Pattern pattern(component["pattern"]);
  std::u16string content = toUtf16(component["content"].getString());
  return makeDecoder<MapStep>([=](const std::string &token, bool) {
    Text text{toUtf16(token)};
    replaceAll(text, pattern, content);
    return toUtf8(text.units);
  });
}

static Decoder readStrip(const Component &component) {
  return makeDecoder<StripStep>(toUtf8(readCodePoint(component["content"])),
                                component["start"].getInteger(maxTextSize),
                                component["stop"].getInteger(maxTextSize));
}

/// Removes the spaces that a tokenizer of English puts around punctuation.
static std::string cleanUp(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto &[from, to] : rules)
    for (size_t i = 0; (i = text.find(from, i)) != text.npos; i += to.size())
      text.replace(i, from.size(), to);
  return text;
}

static Decoder readWordPiece(const Component &component) {
  std::string prefix = component["prefix"].getString();
  bool cleansUp = component["cleanup"].getBool();
  return makeDecoder<MapStep>([=](std::string token, bool isFirst) {
    if (!isFirst) {
      if (token.starts_with(prefix))
        token.erase(0, prefix.size());
      else
        token.insert(0, " ");
    }
    return cleansUp ? cleanUp(std::move(token)) : token;
  });
}

static Decoder readSequence(const Component &component) {
  std::vector<Decoder> decoders;
  for (const Component &each : component["decoders"].getList())
    decoders.push_back(readDecoder(each));
  return [=] {
    std::vector<std::unique_ptr<DecodingStep>> steps;
    for (const Decoder &decoder : decoders)
      for (std::unique_ptr<DecodingStep> &step : decoder())
        steps.push_back(std::move(step));
    return steps;
  };
}

Decoder text::readDecoder(const Component &component) {
  static constexpr std::pair<const char *, Reader> readers[] = {
      {"Sequence", readSequence},
      {"ByteLevel",
       [](const Component &) { return makeDecoder<ByteLevelStep>(); }},
      {"ByteFallback",
       [](const Component &) { return makeDecoder<ByteFallbackStep>(); }},
      {"Fuse", [](const Component &) { return makeDecoder<FuseStep>(); }},
      {"Metaspace", readMetaspace},
      {"Replace", readReplace},
      {"Strip", readStrip},
      {"WordPiece", readWordPiece},
      {"BPEDecoder", [](const Component &component) {
         return makeDecoder<SuffixStep>(component["suffix"].getString());
       }}};
  return component["type"].choose(readers)(component);
}

Decoder text::makeDefaultDecoder() {
  return makeDecoder<MapStep>([](const std::string &token, bool isFirst) {
    return isFirst ? token : " " + token;
  });
}

void Decoding::push(size_t step, Part part, std::string &text) {
  if (step == steps.size())
    text += part.text;
  else
    steps[step]->push(std::move(part), [&, step](Part next) {
      push(step + 1, std::move(next), text);
    });
}

std::string Decoding::push(const std::string &token) {
  std::string text;
  push(0, {token}, text);
  return text;
}

std::string Decoding::finish() {
  std::string text;
  for (size_t step = 0; step < steps.size(); ++step)
    steps[step]->finish(
        [&, step](Part next) { push(step + 1, std::move(next), text); });
  return text;
}
