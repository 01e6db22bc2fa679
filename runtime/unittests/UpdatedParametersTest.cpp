//===- UpdatedParametersTest.cpp - Parameters that programs write ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainPrograms.h"
#include "tprt/Report.h"

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

static float getLoss(const RunResult &result) {
  return getElements<float>(result.outputs.at("loss"))[0];
}

/// What train.c computes, unsharded.
static std::vector<float> trainReference(int64_t steps) {
  std::vector<float> w = {0, 1, 2, 3, 4, 5, 6}, momentum(8);
  float b = -1;
  auto data = makeRegressionData(8);
  std::vector<float> x = getElements<float>(data["x"]),
                     target = getElements<float>(data["target"]);
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<float> gradients(8);
    for (size_t e = 0; e < 8; ++e) {
      float y = b;
      for (size_t f = 0; f < 7; ++f)
        y += 0.5f * w[f] * x[e * 7 + f];
      float error = y - target[e];
      for (size_t f = 0; f < 7; ++f)
        gradients[f] += error * x[e * 7 + f] / 8;
      gradients[7] += 2 * error / 8;
    }
    float rate = 0.05f / (1 + 0.01f * step);
    for (size_t i = 0; i < 8; ++i) {
      momentum[i] = 0.9f * momentum[i] + gradients[i];
      (i < 7 ? w[i] : b) -= rate * momentum[i];
    }
  }
  w.push_back(b);
  return w;
}

TEST(UpdatedParameters, GoFromRunToRun) {
  for (const char *name : {"train.2", "train.3"}) {
    Session session(loadTrainProgram(name), makeRegressionWeights());
    TensorMap batch = makeRegressionData(8);
    float first = getLoss(session.run(batch)), last = 0;
    for (int step = 1; step < 20; ++step)
      last = getLoss(session.run(batch));
    EXPECT_LT(last, first / 4);

    std::vector<float> expected = trainReference(20);
    std::vector<float> w = getElements<float>(session.getParameter("w"));
    w.push_back(getElements<float>(session.getParameter("b"))[0]);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(w[i], expected[i], 1e-4);
    EXPECT_EQ(getElements<int64_t>(session.getParameter("optimizer.step")),
              std::vector<int64_t>{20});
    EXPECT_EQ(getElements<float>(session.getParameter("scale")),
              std::vector<float>{0.5});
  }
}

TEST(UpdatedParameters, LeaveWeightsAsTheyWere) {
  TensorMap weights = makeRegressionWeights();
  Session session(loadTrainProgram("train.2"), weights);
  session.run(makeRegressionData(8));
  EXPECT_EQ(getElements<float>(weights["w"]),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(getElements<float>(weights["b"]), std::vector<float>{-1});
  EXPECT_NE(getElements<float>(session.getParameter("b")),
            std::vector<float>{-1});
}

TEST(UpdatedParameters, BeginAsTheWeightsSayElseAsInitSays) {
  TensorMap weights = makeRegressionWeights();
  weights["optimizer.step"] = makeTensor<int64_t>(Dtype::I64, {}, {41});
  Session session(loadTrainProgram("train.3"), weights);
  EXPECT_EQ(getElements<int64_t>(session.getParameter("optimizer.step")),
            std::vector<int64_t>{41});
  EXPECT_EQ(getElements<float>(session.getParameter("optimizer.momentum.w")),
            std::vector<float>(7));
  Session tokens(loadTrainProgram("tokens"), {});
  EXPECT_EQ(getElements<float>(tokens.getParameter("table")),
            std::vector<float>(16, 1));

  weights.erase("w");
  EXPECT_EQ(errorOf([&] { Session(loadTrainProgram("train.3"), weights); }),
            "missing weight 'w' of type 7xf32");
}

TEST(UpdatedParameters, InitOfEveryType) {
  json manifest = readTrainManifest("tokens");
  int64_t index = manifest["parameters"].size();
  std::vector<std::string> dtypes = {"f32", "f64", "f16", "bf16",
                                     "i64", "i32", "i1"};
  for (const std::string &dtype : dtypes)
    manifest["parameters"].push_back({{"name", dtype},
                                      {"dtype", dtype},
                                      {"shape", {3}},
                                      {"shards", {{{0, 2}}, {{2, 1}}}},
                                      {"init", 1},
                                      {"updated", index++ % 2 == 0}});
  manifest["parameters"][0]["init"] = 0.5;
  Session session(loadTrainManifest(manifest), {});
  for (const std::string &dtype : dtypes) {
    Tensor value = session.getParameter(dtype);
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(loadAsDouble(value.dtype, value.data.get(), i), 1) << dtype;
  }
  EXPECT_EQ(getElements<float>(session.getParameter("table"))[0], 0.5);
}

/// Two halves of a training, the second on another number of ranks.
TEST(UpdatedParameters, AreTakenOutAndSet) {
  TensorMap batch = makeRegressionData(8), state;
  Session first(loadTrainProgram("train.3"), makeRegressionWeights());
  Session whole(loadTrainProgram("train.3"), makeRegressionWeights());
  for (int step = 0; step < 5; ++step) {
    first.run(batch);
    whole.run(batch);
  }
  for (const TensorInfo &info : first.getManifest().parameters)
    state[info.name] = first.getParameter(info.name);
  Session second(loadTrainProgram("train.3"), makeRegressionWeights());
  Session other(loadTrainProgram("train.2"), makeRegressionWeights());
  second.setParameters(state);
  other.setParameters(state);
  for (int step = 0; step < 5; ++step) {
    whole.run(batch);
    second.run(batch);
    other.run(batch);
  }
  std::vector<float> expected = getElements<float>(whole.getParameter("w"));
  EXPECT_EQ(getElements<float>(second.getParameter("w")), expected);
  std::vector<float> w = getElements<float>(other.getParameter("w"));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(w[i], expected[i], 1e-5);
}

TEST(UpdatedParameters, BadValuesChangeNothing) {
  Session session(loadTrainProgram("train.2"), makeRegressionWeights());
  TensorMap values = {{"b", makeTensor<float>(Dtype::F32, {}, {7})},
                      {"w", makeTensor<float>(Dtype::F32, {2}, {7, 7})}};
  EXPECT_EQ(errorOf([&] { session.setParameters(values); }),
            "parameter 'w' has type 2xf32, expected 7xf32");
  EXPECT_EQ(getElements<float>(session.getParameter("b")),
            std::vector<float>{-1});
  EXPECT_EQ(errorOf([&] { session.getParameter("optimizer.stepp"); }),
            "the program has no parameter 'optimizer.stepp' (did you mean "
            "'optimizer.step'?)");
}

TEST(UpdatedParameters, AreDescribed) {
  std::string text = describe(loadTrainProgram("train.2")->getManifest());
  EXPECT_TRUE(contains(text, "  w                     7xf32  Shard(0), "
                             "updated\n"));
  EXPECT_TRUE(contains(text, "  optimizer.step        i64    Replicate, "
                             "updated, begins as 0\n"));
  EXPECT_TRUE(loadTrainProgram("train.2")->getManifest().hasState());
}
