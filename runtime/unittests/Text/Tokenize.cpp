//===- Tokenize.cpp - A tokenizer for scripts that compare it -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   tprt-tokenize tokenizer.json
//
// Answers each line of the standard input with a line:
//
//   {"text": "a b"}      {"ids": [5, 7]}             without special tokens
//   {"text": "a b", "special": true}                 with them
//   {"ids": [5, 7]}      {"texts": ["a", " b", ""]}  as streaming yields them,
//                                                    the rest at last
//   {"ids": [5, 7], "special": true}                 with special tokens
//   {"token": "a"}       {"id": 5}                   or null
//
// An error's line is {"error": "…"}.
//
//===----------------------------------------------------------------------===//

#include "tprt/Tokenizer.h"

#include <iostream>
#include <nlohmann/json.hpp>

using nlohmann::json;

static json answer(const tprt::Tokenizer &tokenizer, const json &question) {
  bool special = question.value("special", false);
  if (question.contains("text"))
    return {{"ids",
             tokenizer.encode(question["text"].get<std::string>(), special)}};
  if (question.contains("token")) {
    std::optional<int64_t> id =
        tokenizer.getId(question["token"].get<std::string>());
    return {{"id", id ? json(*id) : json()}};
  }
  auto ids = question["ids"].get<std::vector<int64_t>>();
  tprt::TextStream stream(tokenizer, /*skipSpecialTokens=*/!special);
  std::string all;
  json texts = json::array();
  auto add = [&](const std::string &text) {
    texts.push_back(text);
    all += text;
  };
  for (int64_t id : ids)
    add(stream.push(id));
  add(stream.finish());
  if (all != tokenizer.decode(ids, !special))
    throw std::logic_error("streaming and decoding differ");
  return {{"texts", texts}};
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  std::unique_ptr<tprt::Tokenizer> tokenizer;
  try {
    tokenizer = tprt::Tokenizer::load(argv[1]);
  } catch (const tprt::Error &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  std::cout << json{{"size", tokenizer->getVocabularySize()}} << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    json reply;
    try {
      reply = answer(*tokenizer, json::parse(line));
    } catch (const tprt::Error &error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply << "\n";
  }
  return 0;
}
