//===- GenerateProgram.h - Programs that generate, for tests ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The programs of Inputs/generate.c, and what they compute.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_UNITTESTS_GENERATEPROGRAM_H
#define TPRT_UNITTESTS_GENERATEPROGRAM_H

#include "TestUtils.h"
#include "tprt/Session.h"

#include <nlohmann/json.hpp>

namespace tprt::test {

inline constexpr int64_t vocabulary = 13, places = 14;

/// The shards of a tensor, the last dimension of which may be split.
inline nlohmann::json makeTensorInfo(const std::string &name,
                                     const std::string &dtype,
                                     const Shape &shape, int64_t ranks,
                                     bool isSplit = false) {
  nlohmann::json shards = nlohmann::json::array();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    nlohmann::json shard = nlohmann::json::array();
    for (size_t d = 0; d < shape.size(); ++d) {
      bool isCut = isSplit && d + 1 == shape.size();
      int64_t chunk = isCut ? (shape[d] + ranks - 1) / ranks : shape[d];
      int64_t begin = isCut ? rank * chunk : 0;
      shard.push_back({begin, std::min(chunk, shape[d] - begin)});
    }
    shards.push_back(shard);
  }
  return {{"name", name},
          {"dtype", dtype},
          {"shape", shape},
          {"placements", nlohmann::json::array()},
          {"shards", shards}};
}

/// A program for `length` tokens.
inline nlohmann::json makeGenerateProgram(const std::string &name,
                                          int64_t length, int64_t ranks,
                                          bool isMasked = false) {
  int64_t batch = isMasked ? 2 : 1;
  auto make = [&](const char *tensor, const Shape &shape) {
    return makeTensorInfo(tensor, "i64", shape, ranks);
  };
  nlohmann::json inputs = {make("input_ids", {batch, length}),
                           make("cache_position", {length})};
  if (isMasked) {
    inputs.push_back(make("position_ids", {batch, length}));
    inputs.push_back(make("attention_mask", {batch, places}));
  }
  std::string entry = (isMasked ? "masked_" : "") + name + "_";
  return {{"name", name},
          {"entries", {entry + std::to_string(ranks)}},
          {"arena_bytes", 0},
          {"parameters", {0, 1, 2}},
          {"inputs", inputs},
          {"outputs",
           {makeTensorInfo("output", "f32", {batch, length, vocabulary}, ranks,
                           /*isSplit=*/true)}},
          {"collectives", nlohmann::json::array()},
          {"ops", nlohmann::json::array()}};
}

/// Programs for one and for four tokens. With masks, for a batch of two.
inline nlohmann::json makeGenerateManifest(int64_t ranks,
                                           bool isMasked = false) {
  int64_t batch = isMasked ? 2 : 1;
  nlohmann::json cache =
      makeTensorInfo("key_cache_0", "f32", {batch, 1, places, 1}, ranks);
  nlohmann::json calls =
      makeTensorInfo("cumulative_length_calls", "i64", {2}, ranks);
  for (nlohmann::json *state : {&cache, &calls}) {
    (*state)["updated"] = true;
    (*state)["init"] = 0;
  }
#if defined(__x86_64__)
  std::string triple = "x86_64-pc-linux-gnu";
#else
  std::string triple = "aarch64-linux-gnu";
#endif
  return {{"schema", TPRT_MANIFEST_SCHEMA},
          {"producer", "test"},
          {"target",
           {{"triple", triple},
            {"cpu", ""},
            {"features", nlohmann::json::array()}}},
          {"mesh",
           {{"name", "mesh"}, {"axes", {{{"name", "tp"}, {"size", ranks}}}}}},
          {"world_size", ranks},
          {"parameters",
           {cache, calls, makeTensorInfo("scale", "f32", Shape(), ranks)}},
          {"programs",
           {makeGenerateProgram("one", 1, ranks, isMasked),
            makeGenerateProgram("four", 4, ranks, isMasked)}}};
}

inline std::shared_ptr<const Artifact>
loadGenerate(const nlohmann::json &manifest) {
  TestDirectory directory;
  return Artifact::load(directory.write(
      "generate.tpx",
      makeContainer(manifest.dump(), readFile(GENERATE_PROGRAM))));
}

inline TensorMap makeGenerateWeights(float scale = 0.25) {
  return {{"scale", makeTensor<float>(Dtype::F32, {}, {scale})}};
}

/// The logits of the token behind `tokens`, without the scale.
inline std::vector<int64_t> getNextLogits(const std::vector<int64_t> &tokens,
                                          bool isMasked = false) {
  int64_t sum = 0, last = static_cast<int64_t>(tokens.size()) - 1;
  for (int64_t j = 0; j <= last; ++j)
    sum += (tokens[j] + 1) * (isMasked ? 1 + j % 3 : 1) * (1 + (last - j) % 5);
  std::vector<int64_t> logits;
  for (int64_t v = 0; v < vocabulary; ++v)
    logits.push_back((v * 7 + sum) % 23);
  return logits;
}

/// The most likely continuation.
inline std::vector<int64_t> continueGreedily(std::vector<int64_t> tokens,
                                             int64_t count,
                                             bool isMasked = false) {
  size_t length = tokens.size();
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> logits = getNextLogits(tokens, isMasked);
    tokens.push_back(std::max_element(logits.begin(), logits.end()) -
                     logits.begin());
  }
  tokens.erase(tokens.begin(), tokens.begin() + length);
  return tokens;
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_GENERATEPROGRAM_H
