//===- TokenizerTest.cpp - Text to tokens, and tokens to text -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text/against_tokenizers.py compares with the library `tokenizers`.
//
//===----------------------------------------------------------------------===//

#include "tprt/Tokenizer.h"

#include "TestUtils.h"

#include <nlohmann/json.hpp>
#include <thread>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

namespace {

class Tokenizers : public testing::Test {
protected:
  /// A byte-level BPE of the letters "a" to "c", a space, and the bytes of 😀.
  static json makeByteLevel() {
    return json::parse(R"({
      "version": "1.0",
      "added_tokens": [
        {"id": 20, "content": "<s>", "single_word": false, "lstrip": false,
         "rstrip": false, "normalized": false, "special": true}],
      "normalizer": null,
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
                        "trim_offsets": true, "use_regex": true},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [20], "tokens": ["<s>"]}}},
      "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "vocab":
        {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ð": 4, "Ł": 5, "ĺ": 6, "Ģ": 7,
         "ab": 8, "Ġab": 9},
        "merges": ["a b", ["Ġ", "ab"]]}})");
  }

  std::unique_ptr<Tokenizer> load(const std::string &text) {
    return Tokenizer::load(directory.write("tokenizer.json", text));
  }
  std::unique_ptr<Tokenizer> load(const json &file) {
    return load(file.dump());
  }
  /// The error when a file is loaded, without the path.
  std::string getError(const std::string &text) {
    try {
      load(text);
    } catch (const Error &error) {
      EXPECT_EQ(error.getKind(), ErrorKind::Input);
      std::string message = error.what(), file = "tokenizer.json': ";
      size_t begin = message.find(file);
      EXPECT_NE(begin, message.npos) << message;
      return message.substr(begin + file.size());
    }
    return "";
  }
  /// The error after the value at a path of the byte-level file is replaced.
  std::string getError(const char *path, const json &value) {
    json file = makeByteLevel();
    file[json::json_pointer(path)] = value;
    return getError(file.dump());
  }

  TestDirectory directory;
};

using Ids = std::vector<int64_t>;

} // namespace

TEST_F(Tokenizers, EncodesAndDecodes) {
  auto tokenizer = load(makeByteLevel());
  EXPECT_EQ(tokenizer->encode("ab ab c"), (Ids{20, 8, 9, 3, 2}));
  EXPECT_EQ(tokenizer->encode("ab", false), (Ids{8}));
  EXPECT_EQ(tokenizer->encode("a<s>b", false), (Ids{0, 20, 1}));
  EXPECT_EQ(tokenizer->encode(""), (Ids{20}));
  EXPECT_EQ(tokenizer->decode(Ids{20, 8, 9, 3, 2}), "ab ab c");
  EXPECT_EQ(tokenizer->decode(Ids{20, 8}, false), "<s>ab");
  // As in `tokenizers`, ids without a token have no text.
  EXPECT_EQ(tokenizer->decode(Ids{8, 10, -1, int64_t(1) << 40}), "ab");
  EXPECT_EQ(tokenizer->getVocabularySize(), 11);
  EXPECT_EQ(tokenizer->getId("Ġab"), 9);
  EXPECT_EQ(tokenizer->getId("<s>"), 20);
  EXPECT_EQ(tokenizer->getId(" ab"), std::nullopt);
}

TEST_F(Tokenizers, StreamsCodePoints) {
  auto tokenizer = load(makeByteLevel());
  TextStream stream(*tokenizer);
  EXPECT_EQ(stream.push(8), "ab");
  EXPECT_EQ(stream.push(4), "");
  EXPECT_EQ(stream.push(5), "");
  EXPECT_EQ(stream.push(6), "");
  EXPECT_EQ(stream.push(7), "😀");
  EXPECT_EQ(stream.push(4), "");
  EXPECT_EQ(stream.push(20), "");
  // The code point wasn't completed.
  EXPECT_EQ(stream.push(0), "\uFFFDa");
  EXPECT_EQ(stream.push(5), "\uFFFD");
  EXPECT_EQ(stream.push(4), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

TEST_F(Tokenizers, StreamsByteTokens) {
  json file = makeByteLevel();
  file["model"] = json::parse(
      R"({"type": "WordLevel", "unk_token": "",
          "vocab": {"<0xC3>": 0, "<0xA9>": 1, "a": 2, "▁": 3}})");
  file["decoder"] = json::parse(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  auto tokenizer = load(file);
  TextStream stream(*tokenizer);
  EXPECT_EQ(stream.push(3), "");
  EXPECT_EQ(stream.push(3), " ");
  EXPECT_EQ(stream.push(0), "");
  // A further byte would make U+FFFD of both.
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(2), "éa");
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

TEST_F(Tokenizers, RefuseTextThatIsntUtf8) {
  auto tokenizer = load(makeByteLevel());
  for (const char *bytes : {"\x80", "\xC3", "\xED\xA0\x80", "\xF5\x80\x80\x80",
                            "\xC0\x80", "\xF0\x9F\x98"})
    EXPECT_TRUE(
        contains(errorOf([&] { tokenizer->encode(std::string("ab") + bytes); }),
                 "the text isn't UTF-8: invalid byte at offset 2"));
}

TEST_F(Tokenizers, RefuseMalformedFiles) {
  EXPECT_TRUE(
      contains(errorOf([&] { Tokenizer::load("/nonexistent/tokenizer.json"); }),
               "'/nonexistent/tokenizer.json'"));
  EXPECT_TRUE(getError("{\n \"model\": }").find("line 2, column 11") !=
              std::string::npos)
      << getError("{\n \"model\": }");
  EXPECT_EQ(getError(R"({"a": 1, "a": 2})"),
            "malformed JSON: 'a' is listed twice");
  EXPECT_EQ(getError("[]"), "expected an object, found array");
  EXPECT_EQ(getError("{}"), "missing 'model'");
  EXPECT_EQ(getError("/model", json::parse(R"({"vocab": {}, "merges": []})")),
            "model: missing 'type', expected 'BPE', 'WordPiece', 'Unigram' or "
            "'WordLevel'; loading and saving the file with `tokenizers` adds "
            "it");
}

TEST_F(Tokenizers, RefuseUnknownComponents) {
  EXPECT_EQ(getError("/normalizer", {{"type", "NFX"}}),
            "normalizer.type: 'NFX' isn't supported (did you mean 'NFC'?), "
            "expected one of 'Sequence', 'NFC', 'NFD', 'NFKC', 'NFKD', "
            "'Lowercase', 'Replace', 'Prepend', 'Strip', 'StripAccents', "
            "'BertNormalizer', 'Precompiled', 'ByteLevel'");
  json sequence = json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Whitespace"}, {"type": "UnicodeScripts"}]})");
  EXPECT_TRUE(getError("/pre_tokenizer", sequence)
                  .starts_with("pre_tokenizer.pretokenizers[1].type: "
                               "'UnicodeScripts' isn't supported, expected"));
  EXPECT_TRUE(getError("/decoder", {{"type", "CTC"}})
                  .starts_with("decoder.type: 'CTC' isn't supported"));
  EXPECT_TRUE(getError("/post_processor", {{"type", "X"}})
                  .starts_with("post_processor.type: 'X' isn't supported"));
  EXPECT_TRUE(getError("/model/type", "CharBPE")
                  .starts_with("model.type: 'CharBPE' isn't supported"));
}

TEST_F(Tokenizers, RefuseInconsistentModels) {
  EXPECT_EQ(getError("/model/dropout", 0.1),
            "model.dropout: dropout makes tokens random, which isn't "
            "supported: set it to null");
  EXPECT_EQ(getError("/model/vocab/a", -1),
            "model.vocab['a']: found -1, expected 0 to 4294967295");
  EXPECT_EQ(getError("/model/vocab/a", 0.5),
            "model.vocab['a']: expected an integer, found number");
  EXPECT_EQ(getError("/model/vocab/b", 0),
            "model.vocab: the tokens 'a' and 'b' have the same id, 0");
  EXPECT_EQ(getError("/model/merges/0", "a b c"),
            "model.merges[0]: found \"a b c\", expected two tokens, such as "
            "\"a b\" or [\"a\", \"b\"]");
  EXPECT_EQ(getError("/model/merges/0", "a z"),
            "model.merges[0]: the vocabulary has no 'z'");
  EXPECT_EQ(getError("/model/merges/0", "b a"),
            "model.merges[0]: the vocabulary has no 'ba'");
  EXPECT_EQ(getError("/model/continuing_subword_prefix", "####"),
            "model.merges[0]: 'b' has no prefix");
  EXPECT_EQ(getError("/added_tokens/0/id", 5),
            "added_tokens[0]: '<s>' has the id 5 of 'Ł' in the model's "
            "vocabulary");
  EXPECT_EQ(getError("/added_tokens/0/content", "ab"),
            "added_tokens[0]: 'ab' has the id 20, but 8 in the model's "
            "vocabulary");
  json added = makeByteLevel()["added_tokens"][0];
  added["id"] = 21;
  EXPECT_EQ(getError("/added_tokens/1", added),
            "added_tokens[1]: another added token has the same id or content "
            "as '<s>'");
  added["content"] = std::string(5000, 'x');
  EXPECT_TRUE(getError("/added_tokens/1", added)
                  .ends_with("has 5000 units of UTF-16 when normalized, "
                             "expected 1 to 4096"));
  EXPECT_EQ(getError("/post_processor/single/0",
                     json::parse(R"({"Sequence": {"id": "B"}})")),
            "post_processor.single[0]: expected the sequence 'A', once");
  EXPECT_EQ(getError("/post_processor/special_tokens/<s>/ids/0", 19),
            "post_processor: the vocabulary has no token 19");
  EXPECT_EQ(getError("/model", json::parse(R"({"type": "Unigram",
                "vocab": [["a", -1.0], ["b"]]})")),
            "model.vocab[1]: found [\"b\"], expected a token and its score, "
            "such as [\"a\", -1.5]");
  EXPECT_EQ(getError("/model", json::parse(R"({"type": "Unigram",
                "unk_id": 1, "vocab": [["a", -1.0]]})")),
            "model.unk_id: found 1, expected 0 to 0");
}

TEST_F(Tokenizers, RefuseMalformedTables) {
  auto refuse = [&](const char *table, const std::string &what) {
    EXPECT_EQ(getError("/normalizer", {{"type", "Precompiled"},
                                       {"precompiled_charsmap", table}}),
              "normalizer.precompiled_charsmap: " + what);
  };
  refuse("!!!", "it isn't base64");
  refuse("AA", "it isn't base64");
  refuse("AAA=", "it has 2 bytes, expected the size of a trie");
  refuse("CAAAAAAAAAA=", "the trie has 8 of 4 bytes");
  refuse("BAAAAAAAAABh/w==", "the text isn't UTF-8: invalid byte at offset 1");
}

TEST_F(Tokenizers, RefuseRegexesThatMayDiffer) {
  auto refuse = [&](const std::string &regex, const std::string &what) {
    json split{{"type", "Split"},
               {"pattern", {{"Regex", regex}}},
               {"behavior", "Isolated"},
               {"invert", false}};
    EXPECT_EQ(getError("/pre_tokenizer", split),
              "pre_tokenizer.pattern: the regular expression '" + regex +
                  "' isn't supported: " + what);
  };
  for (const char *part : {"\\h", "\\b", "\\G", "\\K", "\\1", "\\p{Punct}",
                           "\\p{^L}", "(?m:", "(?<n", "(?#c", "]"})
    refuse(std::string("a") + part + "a)",
           std::string("'") + part + "' may mean something else to ICU");
  refuse("\\x4g", "'\\x4g' may mean something else to ICU");
  refuse("[a--b]", "'--' may mean something else to ICU");
  refuse("[[:alpha:]]", "'[:' may mean something else to ICU");
  refuse("a(?i)b", "'(?i)' may mean something else to ICU");
  refuse("a{,2}", "'{,2}' may mean something else to ICU");
  refuse("a{2}?", "'?' may mean something else to ICU");
  refuse("a{2,3}+", "'+' may mean something else to ICU");
  refuse("a**", "'*' may mean something else to ICU");
  refuse("[]a]", "a set is empty, or ']' isn't escaped");
  refuse("[a", "a '[' isn't closed");
  refuse("a\\", "it ends with '\\'");
  refuse("(a", "U_REGEX_MISMATCHED_PAREN");
  refuse("\\p{Nonsense}", "U_REGEX_PROPERTY_SYNTAX");
}

TEST_F(Tokenizers, BoundSearchesAndReplacements) {
  json file = makeByteLevel();
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "(?:a|a)+b"}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  auto tokenizer = load(file);
  EXPECT_EQ(tokenizer->encode("aab", false), (Ids{0, 8}));
  EXPECT_TRUE(
      contains(errorOf([&] { tokenizer->encode(std::string(100, 'a')); }),
               "pre_tokenizer.pattern: the regular expression needs too "
               "many steps, or too much memory, for the text: "
               "U_REGEX_TIME_OUT"));
  // Not exponential, but with the square of the text's length.
  file["pre_tokenizer"]["pattern"]["Regex"] = "(?:a|c)+b";
  EXPECT_TRUE(
      contains(errorOf([&] { load(file)->encode(std::string(20'000, 'a')); }),
               "U_REGEX_TIME_OUT"));
  // The bound grows with the text.
  file["pre_tokenizer"]["pattern"]["Regex"] = "(?:b|c|d|e|f|g|h|i|a)";
  std::string longText(2'000'000, 'a');
  EXPECT_EQ(load(file)->encode(longText, false).size(), longText.size());

  file = makeByteLevel();
  json bomb = {{"type", "Replace"},
               {"pattern", {{"String", "a"}}},
               {"content", std::string(1000, 'a')}};
  file["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", {bomb, bomb, bomb}}};
  EXPECT_TRUE(
      contains(errorOf([&] { load(file)->encode("a"); }),
               "the tokenizer makes the text larger than 16777216 units"));
  // Each piece between special tokens is normalized separately.
  file["normalizer"] = {{"type", "Prepend"},
                        {"prepend", std::string(1'000'000, 'a')}};
  std::string pieces;
  for (int i = 0; i < 20; ++i)
    pieces += "a<s>";
  EXPECT_TRUE(
      contains(errorOf([&] { load(file)->encode(pieces); }),
               "the tokenizer makes the text larger than 16777216 units"));
  EXPECT_TRUE(
      contains(errorOf([&] {
                 load(makeByteLevel())->encode(std::string(17'000'000, 'a'));
               }),
               "the text has 17000000 bytes, at most 16777216 are "
               "supported"));
}

TEST_F(Tokenizers, ReportUnknownTokens) {
  json file = makeByteLevel();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  file["model"] = json::parse(
      R"({"type": "WordLevel", "unk_token": "?", "vocab": {"a": 0}})");
  EXPECT_TRUE(
      contains(errorOf([&] { load(file)->encode("a b"); }),
               "the vocabulary has neither 'b' nor the unknown token '?'"));
  file["model"] = json::parse(
      R"({"type": "WordPiece", "unk_token": "?", "vocab": {"a": 0},
          "continuing_subword_prefix": "##", "max_input_chars_per_word": 9})");
  EXPECT_TRUE(contains(errorOf([&] { load(file)->encode("ab"); }),
                       "the vocabulary has neither the tokens of 'ab' nor the "
                       "unknown token '?'"));
  file["model"] = json::parse(R"({"type": "Unigram", "vocab": [["a", -1.0]]})");
  EXPECT_TRUE(contains(errorOf([&] { load(file)->encode("ab"); }),
                       "the vocabulary has neither 'b' nor an unknown token"));
  file["model"] = json::parse(R"({"type": "BPE", "unk_token": "?",
                                  "vocab": {"a": 0}, "merges": []})");
  EXPECT_TRUE(
      contains(errorOf([&] { load(file)->encode("ab"); }),
               "the vocabulary has neither 'b' nor the unknown token '?'"));
}

TEST_F(Tokenizers, AreUsedByThreads) {
  auto tokenizer = load(makeByteLevel());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat)
        EXPECT_EQ(tokenizer->encode("ab ab c"), (Ids{20, 8, 9, 3, 2}));
    });
  for (std::thread &thread : threads)
    thread.join();
}
