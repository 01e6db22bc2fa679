//===- StateTest.cpp - Files of a session's state -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/State.h"

#include "GenerateProgram.h"
#include "TrainPrograms.h"

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

static TensorMap makeInputs(const std::vector<int64_t> &ids, int64_t at) {
  int64_t length = ids.size();
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < length; ++i)
    positions.push_back(at + i);
  return {
      {"input_ids", makeTensor<int64_t>(Dtype::I64, {1, length}, ids)},
      {"cache_position", makeTensor<int64_t>(Dtype::I64, {length}, positions)}};
}

/// The logits of the last token.
static std::vector<float> getLast(const RunResult &result) {
  std::vector<float> all = getElements<float>(result.outputs.at("output"));
  return {all.end() - vocabulary, all.end()};
}

static std::vector<float> getExpected(const std::vector<int64_t> &tokens) {
  std::vector<float> expected;
  for (int64_t logit : getNextLogits(tokens))
    expected.push_back(logit * 0.25f);
  return expected;
}

static void write(const Session &session, const std::string &path) {
  writeState(path, session.getManifest(), [&](const std::string &name) {
    return session.getParameter(name);
  });
}

TEST(State, IsSharedByPrograms) {
  Session session(loadGenerate(makeGenerateManifest(2)), makeGenerateWeights());
  session.run(makeInputs({1, 2, 3, 4}, 0));
  EXPECT_EQ(getLast(session.run(makeInputs({5}, 4))),
            getExpected({1, 2, 3, 4, 5}));
  session.resetState();
  EXPECT_EQ(getElements<float>(session.getParameter("key_cache_0")),
            std::vector<float>(places));
  EXPECT_EQ(getLast(session.run(makeInputs({5}, 0))), getExpected({5}));
}

TEST(State, IsWrittenAndRead) {
  TestDirectory directory;
  Session one(loadGenerate(makeGenerateManifest(1)), makeGenerateWeights());
  one.run(makeInputs({1, 2, 3, 4}, 0));
  write(one, directory / "state.safetensors");
  EXPECT_EQ(directory.countFiles(), 1u);
  Session two(loadGenerate(makeGenerateManifest(2)), makeGenerateWeights());
  two.setParameters(
      readState(directory / "state.safetensors", two.getManifest()));
  EXPECT_EQ(getLast(two.run(makeInputs({5}, 4))), getExpected({1, 2, 3, 4, 5}));
}

TEST(State, OfAnotherArtifactIsRefused) {
  TestDirectory directory;
  std::string path = directory / "state.safetensors";
  Session session(loadGenerate(makeGenerateManifest(1)), makeGenerateWeights());
  write(session, path);
  json manifest = makeGenerateManifest(1);
  auto getError = [&] {
    return errorOf([&] { readState(path, Manifest::parse(manifest.dump())); });
  };
  manifest["parameters"][0] =
      makeTensorInfo("key_cache_0", "f32", {1, 1, 16, 1}, 1);
  manifest["parameters"][0]["updated"] = true;
  EXPECT_EQ(getError(),
            "'" + path +
                "' isn't a state of this artifact:\n"
                "tensor 'key_cache_0' has type 1x1x14x1xf32, expected "
                "1x1x16x1xf32");
  // Not even rounded.
  manifest["parameters"][0] =
      makeTensorInfo("key_cache_0", "bf16", {1, 1, places, 1}, 1);
  manifest["parameters"][0]["updated"] = true;
  EXPECT_TRUE(contains(getError(),
                       "tensor 'key_cache_0' has type 1x1x14x1xf32, "
                       "expected 1x1x14x1xbf16"));
  manifest["parameters"][0]["dtype"] = "f32";
  manifest["parameters"][0]["name"] = "key";
  EXPECT_TRUE(contains(getError(), "missing tensor 'key'"));
  EXPECT_TRUE(contains(getError(),
                       "unknown tensor 'key_cache_0', expected 'key', "
                       "'cumulative_length_calls'"));
}

TEST(State, IsOnlyResetAsAWhole) {
  Session session(loadTrainProgram("train.2"), makeRegressionWeights());
  session.run(makeRegressionData(8));
  EXPECT_EQ(errorOf([&] { session.resetState(); }),
            "parameter 'w' is updated and has no initial value, so the state "
            "can't be reset");
  EXPECT_EQ(getElements<int64_t>(session.getParameter("optimizer.step")),
            std::vector<int64_t>{1});
}
