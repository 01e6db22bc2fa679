//===- TokenizerFuzzer.cpp - Any bytes as a tokenizer and a text ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file tokenizer.json, and behind a byte 0, which no JSON has, the text.
//
//===----------------------------------------------------------------------===//

#include "FuzzFile.h"

#include "tprt/Tokenizer.h"

using namespace tprt;
using namespace tprt::fuzz;

static std::string stream(const Tokenizer &tokenizer,
                          const std::vector<int64_t> &ids) {
  TextStream stream(tokenizer);
  std::string text;
  for (int64_t id : ids)
    text += stream.push(id);
  return text + stream.finish();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view input = asText(data, size);
  size_t end = std::min(input.find('\0'), size);
  std::string_view text = input.substr(std::min(end + 1, size));
  std::unique_ptr<Tokenizer> tokenizer;
  readOrRefuse([&] {
    MemoryFile file(input.substr(0, end));
    tokenizer = Tokenizer::load(file.getPath());
  });
  if (!tokenizer)
    return 0;
  readOrRefuse([&] {
    std::vector<int64_t> ids = tokenizer->encode(text);
    touch(ids.data(), ids.size() * sizeof(int64_t));
  });
  std::vector<int64_t> ids(text.begin(), text.end());
  readOrRefuse([&] {
    if (stream(*tokenizer, ids) != tokenizer->decode(ids))
      std::abort();
  });
  return 0;
}
