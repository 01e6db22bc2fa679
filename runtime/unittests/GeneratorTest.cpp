//===- GeneratorTest.cpp - Text from small programs -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Generator.h"

#include "GenerateProgram.h"
#include "Jobs.h"
#include "tprt/GenerationReport.h"

#include <barrier>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

using Prompts = std::vector<std::vector<int64_t>>;

static std::vector<int64_t> makePrompt(int64_t length) {
  std::vector<int64_t> prompt;
  for (int64_t i = 0; i < length; ++i)
    prompt.push_back((i * 5 + 3) % vocabulary);
  return prompt;
}

/// How often the last generation has run the programs for one token and for
/// four.
static std::pair<int64_t, int64_t> getCalls(const Session &session) {
  std::vector<int64_t> calls =
      getElements<int64_t>(session.getParameter("cumulative_length_calls"));
  return {calls[0], calls[1]};
}

TEST(Generator, ContinuesPromptsOfAnyLength) {
  for (int64_t ranks : {1, 2}) {
    Session session(loadGenerate(makeGenerateManifest(ranks)),
                    makeGenerateWeights());
    Generator generator(session);
    EXPECT_EQ(generator.getBatchSize(), 1);
    EXPECT_EQ(generator.getCacheSize(), places);
    EXPECT_EQ(generator.getVocabularySize(), vocabulary);
    for (int64_t length = 1; length <= places; ++length) {
      int64_t count = places + 1 - length; // the last one isn't read
      Generation result =
          generator.generate({makePrompt(length)}, {.maxNewTokens = count});
      EXPECT_EQ(result.tokens,
                Prompts{continueGreedily(makePrompt(length), count)})
          << length;
      EXPECT_EQ(result.tokenSeconds.size(), static_cast<size_t>(count - 1));
      EXPECT_FALSE(result.wasStopped);
    }
  }
}

/// The fewest runs: padded, but not beyond the cache.
TEST(Generator, ReadsPromptsInParts) {
  auto count = [](const json &manifest, int64_t length) {
    Session session(loadGenerate(manifest), makeGenerateWeights());
    Generation result =
        Generator(session).generate({makePrompt(length)}, {.maxNewTokens = 1});
    EXPECT_EQ(result.tokens, Prompts{continueGreedily(makePrompt(length), 1)});
    return getCalls(session);
  };
  json manifest = makeGenerateManifest(2), last = manifest;
  EXPECT_EQ(count(manifest, 1), std::pair(1l, 0l));
  EXPECT_EQ(count(manifest, 3), std::pair(0l, 1l));
  EXPECT_EQ(count(manifest, 4), std::pair(0l, 1l));
  EXPECT_EQ(count(manifest, 5), std::pair(1l, 1l));
  EXPECT_EQ(count(manifest, 7), std::pair(0l, 2l));
  EXPECT_EQ(count(manifest, 12), std::pair(0l, 3l));
  EXPECT_EQ(count(manifest, 14), std::pair(2l, 3l)); // the cache ends there
  // Logits of the last token alone are those of the padding.
  json &four = last["programs"][1];
  four["entries"] = json::array({"last_2"});
  four["outputs"][0] =
      makeTensorInfo("output", "f32", {1, vocabulary}, 2, /*isSplit=*/true);
  EXPECT_EQ(count(last, 3), std::pair(3l, 0l));
  EXPECT_EQ(count(last, 4), std::pair(0l, 1l));
  EXPECT_EQ(count(last, 7), std::pair(3l, 1l));
  // Padding would change a state that isn't a place for each token.
  for (json other : {makeTensorInfo("recurrent", "f32", {1, 5}, 2),
                     makeTensorInfo("recurrent", "f32", {1, 2, 14, 3}, 2),
                     makeTensorInfo("key_cache_1", "f32", {1, 2, 5, 14}, 2),
                     makeTensorInfo("seen", "i64", Shape(), 2)}) {
    other["updated"] = true;
    other["init"] = 0;
    json state = manifest;
    state["parameters"].push_back(other);
    EXPECT_EQ(count(state, 3), std::pair(3l, 0l)) << other;
    EXPECT_EQ(count(state, 8), std::pair(0l, 2l)) << other;
  }
}

TEST(Generator, StopsAtEndTokensAndOnRequest) {
  Session session(loadGenerate(makeGenerateManifest(2)), makeGenerateWeights());
  Generator generator(session);
  Prompts prompts = {{1, 2, 3}};
  std::vector<int64_t> all = continueGreedily(prompts[0], 10), ended = all;
  ended.erase(std::find(ended.begin(), ended.end(), all[4]) + 1, ended.end());
  Generation result =
      generator.generate(prompts, {.maxNewTokens = 10, .endTokens = {all[4]}});
  EXPECT_EQ(result.tokens, Prompts{ended});
  EXPECT_FALSE(result.wasStopped);

  std::vector<int64_t> seen;
  result = generator.generate(
      prompts, {.maxNewTokens = 10, .onTokens = [&](auto tokens) {
                  seen.insert(seen.end(), tokens.begin(), tokens.end());
                  return seen.size() < 3;
                }});
  EXPECT_EQ(result.tokens[0],
            std::vector<int64_t>(all.begin(), all.begin() + 3));
  EXPECT_EQ(seen, result.tokens[0]);
  EXPECT_TRUE(result.wasStopped);
}

/// Each sequence of a batch continues as it does alone, whatever the lengths.
TEST(Generator, PadsPromptsOfABatch) {
  for (int64_t ranks : {1, 2}) {
    Session session(loadGenerate(makeGenerateManifest(ranks, true)),
                    makeGenerateWeights());
    Generator generator(session);
    EXPECT_EQ(generator.getBatchSize(), 2);
    for (auto [one, two] : {std::pair(3, 3), std::pair(2, 7), std::pair(6, 1),
                            std::pair(4, 5), std::pair(10, 1)}) {
      Prompts prompts = {makePrompt(one), makePrompt(two)};
      prompts[1][0] = 9;
      Generation result = generator.generate(prompts, {.maxNewTokens = 5});
      for (size_t b = 0; b < 2; ++b)
        EXPECT_EQ(result.tokens[b], continueGreedily(prompts[b], 5, true))
            << one << " " << two;
    }
  }
}

/// A rank has the logits of one sequence only.
TEST(Generator, SequencesMayBeOnDifferentRanks) {
  json manifest = makeGenerateManifest(2, true);
  for (json &program : manifest["programs"]) {
    std::string name = program["name"];
    program["entries"] = {"split_" + name + "_2"};
    json &output = program["outputs"][0];
    int64_t length = output["shape"][1];
    for (int64_t rank = 0; rank < 2; ++rank)
      output["shards"][rank] = {{rank, 1}, {0, length}, {0, vocabulary}};
  }
  Session session(loadGenerate(manifest), makeGenerateWeights());
  Generator generator(session);
  Prompts prompts = {{1, 2, 3}, {4, 5}};
  Generation result = generator.generate(prompts, {.maxNewTokens = 4});
  for (size_t b = 0; b < 2; ++b)
    EXPECT_EQ(result.tokens[b], continueGreedily(prompts[b], 4, true));
  GenerationOptions options{.maxNewTokens = 6, .sampling = {2, 0, 0.9, 1}};
  Session whole(loadGenerate(makeGenerateManifest(2, true)),
                makeGenerateWeights());
  EXPECT_EQ(generator.generate(prompts, options).tokens,
            Generator(whole).generate(prompts, options).tokens);
}

TEST(Generator, SequencesOfABatchEndByThemselves) {
  Session session(loadGenerate(makeGenerateManifest(2, true)),
                  makeGenerateWeights());
  Prompts prompts = {{1, 2}, {4, 5, 6}};
  std::vector<int64_t> one = continueGreedily(prompts[0], 8, true),
                       two = continueGreedily(prompts[1], 8, true);
  for (int64_t end = 0; end < vocabulary; ++end) {
    Prompts rows(2);
    Generation result = Generator(session).generate(
        prompts,
        {.maxNewTokens = 8, .endTokens = {end}, .onTokens = [&](auto tokens) {
           rows[0].push_back(tokens[0]);
           rows[1].push_back(tokens[1]);
           return true;
         }});
    for (size_t b = 0; b < 2; ++b) {
      std::vector<int64_t> expected = b == 0 ? one : two;
      auto at = std::find(expected.begin(), expected.end(), end);
      if (at != expected.end())
        expected.erase(at + 1, expected.end());
      EXPECT_EQ(result.tokens[b], expected);
      expected.resize(rows[b].size(), end); // the last one repeats
      EXPECT_EQ(rows[b], expected);
    }
    EXPECT_EQ(rows[0].size(),
              std::max(result.tokens[0].size(), result.tokens[1].size()));
  }
}

TEST(Generator, DrawsTheSameOnAnyNumberOfRanks) {
  std::vector<Prompts> all;
  for (int64_t ranks : {1, 2}) {
    Session session(loadGenerate(makeGenerateManifest(ranks, true)),
                    makeGenerateWeights());
    Generator generator(session);
    for (const SamplingOptions &sampling : std::vector<SamplingOptions>{
             {1, 0, 1, 1}, {1, 4, 1, 2}, {2, 0, 0.8, 3}, {1.5, 6, 0.7, 4}}) {
      GenerationOptions options{.maxNewTokens = 10, .sampling = sampling};
      Prompts prompts = {{1, 2}, {3, 4, 5}};
      all.push_back(generator.generate(prompts, options).tokens);
      EXPECT_EQ(all.back(), generator.generate(prompts, options).tokens);
    }
  }
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(all[i], all[i + 4]);
  EXPECT_NE(all[0], all[1]);
}

TEST(Generator, RefusesBadArguments) {
  Session session(loadGenerate(makeGenerateManifest(1)), makeGenerateWeights());
  Generator generator(session);
  auto getError = [&](Prompts prompts, GenerationOptions options = {}) {
    options.maxNewTokens = std::min<int64_t>(options.maxNewTokens, 8);
    return errorOf([&] { generator.generate(prompts, options); });
  };
  EXPECT_EQ(getError({}),
            "the programs generate 1 sequence at a time, found 0 prompts");
  EXPECT_EQ(getError({{}}), "prompt 0 is empty, expected at least one token");
  EXPECT_EQ(getError({{1, 13}}), "token 1 of prompt 0 is 13, expected an id of "
                                 "the vocabulary, 0 to 12");
  EXPECT_TRUE(contains(getError({{-1}}), "token 0 of prompt 0 is -1"));
  EXPECT_TRUE(contains(getError({{1}}, {.endTokens = {99}}),
                       "an end token is 99, expected"));
  EXPECT_EQ(getError({{1}}, {.maxNewTokens = 0}),
            "found 0 new tokens, expected at least one");
  EXPECT_EQ(getError({makePrompt(15)}),
            "a prompt of 15 tokens doesn't fit in the cache, which has 14 "
            "(dimension 2 of 'key_cache_0', 1x1x14x1xf32)");
  EXPECT_EQ(getError({makePrompt(8)}),
            "a prompt of 8 tokens and 8 new ones don't fit in the cache, which "
            "has 14 (dimension 2 of 'key_cache_0', 1x1x14x1xf32)");
  EXPECT_TRUE(contains(getError({{1}}, {.sampling = {-1}}), "temperature"));
  EXPECT_EQ(session.getCommunication(), "");
  EXPECT_EQ(getCalls(session), std::pair(0l, 0l)); // nothing has run
}

TEST(Generator, PromptsOfOneLengthNeedNoMask) {
  json manifest = makeGenerateManifest(1, true);
  Session masked(loadGenerate(manifest), makeGenerateWeights());
  EXPECT_EQ(errorOf([&] { Generator(masked, {.cacheSize = 3}); }),
            "a cache of 3 tokens is given, expected 14 (the size of input "
            "'attention_mask', 2x14xi64)");
  for (json &program : manifest["programs"]) {
    program["inputs"].erase(3);
    program["entries"] = json::array({"one_1"}); // isn't called
  }
  Session session(loadGenerate(manifest), makeGenerateWeights());
  EXPECT_EQ(errorOf([&] {
              Generator(session).generate({{1, 2}, {3}}, {.maxNewTokens = 2});
            }),
            "prompts 0 and 1 have 2 and 1 token; prompts of different lengths "
            "are padded at the beginning, which needs programs with the inputs "
            "'attention_mask' and 'position_ids'");
}

TEST(Generator, ExplainsWhyProgramsDontGenerate) {
  auto getError = [](const json &manifest, GeneratorOptions options = {}) {
    Session session(loadGenerate(manifest), makeGenerateWeights());
    return errorOf([&] { Generator generator(session, options); });
  };
  json manifest = makeGenerateManifest(1);
  auto edit = [&](const std::string &pointer, const json &value) {
    json edited = manifest;
    edited[json::json_pointer(pointer)] = value;
    return edited;
  };
  json tokens = edit("/programs/0/inputs/0/name", "tokens");
  EXPECT_EQ(getError(tokens),
            "no program takes one token at a time, which generation needs: "
            "export the model with 'input_ids' of 1x1xi64 and "
            "'cache_position' of 1xi64, too");
  tokens["programs"].erase(1);
  EXPECT_EQ(getError(tokens), "no program generates text:\nprogram 'one': it "
                              "has no input 'input_ids'");
  { // another name may be given
    Session session(loadGenerate(tokens), makeGenerateWeights());
    Generator generator(session, {.ids = "tokens"});
    EXPECT_EQ(generator.generate({{1, 2}}, {.maxNewTokens = 3}).tokens,
              Prompts{continueGreedily({1, 2}, 3)});
  }
  manifest["programs"].erase(1);
  EXPECT_TRUE(contains(getError(edit("/programs/0/inputs/1/name", "past")),
                       "it has no input 'cache_position'"));
  json more = manifest;
  more["programs"][0]["inputs"].push_back(
      makeTensorInfo("segments", "i64", {1, 1}, 1));
  EXPECT_TRUE(
      contains(getError(more), "nothing is known about its input 'segments'"));
  json narrow = manifest;
  narrow["programs"][0]["inputs"][0]["dtype"] = "i32";
  EXPECT_TRUE(contains(getError(narrow), "input 'input_ids' is 1x1xi32, "
                                         "expected i64 of batch x length"));
  json logits = manifest;
  logits["programs"][0]["outputs"][0]["dtype"] = "i64";
  EXPECT_TRUE(contains(getError(logits),
                       "output 'output' is 1x1x13xi64, expected f32, f16 or "
                       "bf16 of 1 x 1 x vocabulary, or 1 x vocabulary"));
  json two = manifest;
  two["programs"][0]["outputs"].push_back(
      makeTensorInfo("hidden", "f32", {1, 1, 4}, 1));
  EXPECT_TRUE(
      contains(getError(two), "of its 2 outputs none is called 'logits'"));
  json stateless = manifest;
  stateless["programs"][0]["parameters"] = {2};
  EXPECT_TRUE(contains(getError(stateless),
                       "program 'one' updates no parameter, so it keeps no "
                       "cache from token to token"));
  Session cached(loadGenerate(manifest), makeGenerateWeights());
  EXPECT_EQ(errorOf([&] { Generator(cached, {.cacheSize = places + 1}); }),
            "a cache of 15 tokens is given, expected at most 14 (dimension 2 "
            "of 'key_cache_0', 1x1x14x1xf32)");
  json renamed = manifest; // its dimension 2 may be anything
  renamed["parameters"][0]["name"] = "keys";
  Session unknown(loadGenerate(renamed), makeGenerateWeights());
  EXPECT_EQ(Generator(unknown).getCacheSize(), places);
  EXPECT_EQ(Generator(unknown, {.cacheSize = places + 1}).getCacheSize(),
            places + 1);
  json flat = manifest;
  flat["parameters"][0] = makeTensorInfo("key_cache_0", "f32", {1, places}, 1);
  flat["parameters"][0]["updated"] = true;
  flat["parameters"][0]["init"] = 0;
  EXPECT_TRUE(contains(getError(flat), "the size of the cache can't be told"));
  Session session(loadGenerate(flat), makeGenerateWeights());
  EXPECT_EQ(
      errorOf([&] { Generator(session, {.cacheSize = 10}).generate({{1}}); }),
      "a prompt of 1 token and 64 new ones don't fit in the cache, which has "
      "10 (as given)");
}

TEST(Generator, ReportsWrongLogits) {
  Session session(loadGenerate(makeGenerateManifest(2)),
                  makeGenerateWeights(NAN));
  Generator generator(session);
  EXPECT_TRUE(contains(
      errorOf([&] { generator.generate({{1, 2, 3}}, {.maxNewTokens = 2}); }),
      "is NaN, for token 0 of sequence 0"));
  // The session can go on.
  session.setParameters(makeGenerateWeights());
  EXPECT_EQ(generator.generate({{1, 2, 3}}, {.maxNewTokens = 2}).tokens,
            Prompts{continueGreedily({1, 2, 3}, 2)});
}

//===----------------------------------------------------------------------===//
// Several processes
//===----------------------------------------------------------------------===//

namespace {

/// Where two processes, here threads, meet.
struct Meeting {
  std::barrier<> barrier{2};
  std::vector<std::string> contributions = std::vector<std::string>(2);
};

/// A rank that is alone in its process.
class LoneCommunicator final : public Communicator {
public:
  LoneCommunicator(int64_t rank, Meeting &meeting)
      : rank(rank), meeting(meeting) {}

  int64_t getRank() const override { return rank; }
  int64_t run(int64_t, const std::byte *, std::byte *) override { return 0; }
  std::vector<std::string> exchange(const std::string &mine,
                                    size_t limit) override {
    EXPECT_LE(mine.size(), limit);
    meeting.contributions[rank] = mine;
    meeting.barrier.arrive_and_wait();
    std::vector<std::string> all = meeting.contributions;
    meeting.barrier.arrive_and_wait();
    return all;
  }
  void barrier() override {}
  void abort(const std::string &) override {}
  void finish() override {}

private:
  const int64_t rank;
  Meeting &meeting;
};

} // namespace

static SessionOptions makeLone(int64_t rank, Meeting &meeting) {
  SessionOptions options;
  options.ranks = {rank};
  options.makeCommunicators = [rank, &meeting](const Manifest &,
                                               const CommunicatorOptions &) {
    std::vector<std::unique_ptr<Communicator>> hosted;
    hosted.push_back(std::make_unique<LoneCommunicator>(rank, meeting));
    return hosted;
  };
  return options;
}

TEST(Generator, ProcessesChooseTheSame) {
  auto artifact = loadGenerate(makeGenerateManifest(2));
  Meeting meeting;
  Prompts prompts = {{1, 2, 3}};
  std::vector<int64_t> expected = continueGreedily(prompts[0], 8);
  runThreads(2, [&](int64_t rank) {
    Session session(artifact, makeGenerateWeights(), makeLone(rank, meeting));
    Generator generator(session);
    EXPECT_EQ(generator.generate(prompts, {.maxNewTokens = 8}).tokens[0],
              expected);
    // If one of them ends, both do, one token later.
    int64_t numSeen = 0;
    Generation result =
        generator.generate(prompts, {.maxNewTokens = 8, .onTokens = [&](auto) {
                                       return rank == 0 || ++numSeen < 3;
                                     }});
    EXPECT_EQ(result.tokens[0],
              std::vector<int64_t>(expected.begin(), expected.begin() + 4));
    EXPECT_TRUE(result.wasStopped);
    EXPECT_TRUE(
        contains(errorOf([&] {
                   generator.generate({{1, 2, rank}}, {.maxNewTokens = 2});
                 }),
                 "the ranks don't agree on the prompts, or on the options of "
                 "generation"));
  });
}

TEST(Generator, IsReported) {
  Session session(loadGenerate(makeGenerateManifest(1)), makeGenerateWeights());
  Generator generator(session);
  Generation generation = generator.generate({{1, 2, 3}}, {.maxNewTokens = 3});
  EXPECT_TRUE(contains(describe(generation, {{1, 2, 3}}),
                       "3 prompt tokens and the first new one in "));
  json report = json::parse(makeGenerationReport("m.tpx", session, generator,
                                                 generation, {{1, 2, 3}}));
  EXPECT_EQ(report["tokens"], json(Prompts{continueGreedily({1, 2, 3}, 3)}));
  EXPECT_EQ(report["token_seconds"]["steps"].size(), 2u);
  EXPECT_EQ(report["cache_size"], places);
  generation = generator.generate({{1, 2, 3}}, {.maxNewTokens = 1});
  EXPECT_TRUE(describe(generation, {{1, 2, 3}}).ends_with(" ms"));
}
