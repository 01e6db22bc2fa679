//===- CudaSessionTest.cpp - The toy program on a device ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Session.h"

#include "Fake.h"
#include "ToyManifest.h"

#include <nlohmann/json.hpp>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

static json makeManifest(const std::string &entry) {
  json manifest = makeToyDeviceManifest(entry);
  manifest["programs"][0]["arena_bytes"] = 6 * 64 * 4;
  return manifest;
}

static std::shared_ptr<const Artifact>
loadProgram(const std::string &entry = "tpx_main") {
  TestDirectory directory;
  return Artifact::load(
      directory.write("toy.tpx", makeContainer(makeManifest(entry).dump(),
                                               readFile(CUDA_PROGRAM))));
}

static TensorMap makeInputs(float first = 1) {
  return {{"x", makeTensor<float>(Dtype::F32, {2, 4},
                                  {first, 2, 3, 4, 5, 6, 7, 8})}};
}
static TensorMap makeWeights() {
  return {{"w", makeTensor<float>(Dtype::F32, {4, 3},
                                  {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1})},
          {"b", makeTensor<float>(Dtype::F32, {3}, {10, 20, 30})}};
}

namespace {

class CudaSessionTest : public testing::Test {
protected:
  void SetUp() override { fake::reset(); }
  void TearDown() override { fake::reset(); }

  static std::vector<float> getResult(const RunResult &result) {
    return getElements<float>(result.outputs.at("y"));
  }
  const std::vector<float> expected = {30, 52, 74, 46, 68, 90};
};

} // namespace

TEST_F(CudaSessionTest, RunsTheToyProgram) {
  Session session(loadProgram(), makeWeights());
  RunResult result = session.run(makeInputs());
  EXPECT_EQ(getResult(result), expected);
  for (int64_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(result.counts[rank][0], (CollectiveCount{1, 24}));
  EXPECT_EQ(fake::countCalls("cuLaunchKernel scale"), 2u);
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_reduce_sum_f32"), 2u);
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 2u);
  EXPECT_EQ(fake::countCalls("cuGraphLaunch"), 0u);
}

TEST_F(CudaSessionTest, CapturesOneGraphOfAllRanks) {
  Session session(loadProgram(), makeWeights());
  session.run(makeInputs());
  size_t eager = fake::countCalls("cuLaunchKernel");
  EXPECT_EQ(getResult(session.run(makeInputs())), expected);
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 1u);
  EXPECT_EQ(fake::countCalls("cuGraphLaunch"), 1u);
  // Two launches of the program's, two reductions.
  EXPECT_EQ(fake::countCalls("cuLaunchKernel"), eager + 4);
  for (float first : {3, 4, 5}) {
    std::vector<float> shifted = expected;
    shifted[0] += 2 * (first - 1);
    RunResult result =
        session.run(makeInputs(first), {.warmup = 1, .repeat = 2});
    EXPECT_EQ(getResult(result), shifted);
    EXPECT_EQ(result.counts[1][0], (CollectiveCount{1, 24}));
  }
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 1u);
  EXPECT_EQ(fake::countCalls("cuGraphLaunch"), 1u + 9);
  EXPECT_EQ(fake::countCalls("cuLaunchKernel"), eager + 4);
}

/// Each program is captured once all of them have run, and replayed from then
/// on; the arena and the weights are common.
TEST_F(CudaSessionTest, SwitchesBetweenPrograms) {
  TestDirectory directory;
  Session session(Artifact::load(directory.write(
                      "toy.tpx", makeContainer(makeToyDeviceBuckets().dump(),
                                               readFile(CUDA_PROGRAM)))),
                  makeWeights());
  std::vector<float> longer = expected;
  longer.insert(longer.end(), {62, 84, 106, 78, 100, 122});
  TensorMap rows = {{"x", makeTensor<float>(Dtype::F32, {4, 4},
                                            {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                             12, 13, 14, 15, 16})}};
  auto runBoth = [&](int times) {
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(getResult(session.run(makeInputs())), expected);
      RunResult result = session.run(rows);
      EXPECT_EQ(getResult(result), longer);
      EXPECT_EQ(result.counts[0][0], (CollectiveCount{0, 0}));
      EXPECT_EQ(result.counts[0][2], (CollectiveCount{1, 48}));
    }
  };
  session.run(makeInputs());
  session.run(makeInputs());
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 1u);
  session.run(rows); // may replace memory of the captured run
  runBoth(1);
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 3u);
  size_t allocations = fake::countCalls("cuMemAlloc");
  runBoth(3);
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 3u);
  EXPECT_EQ(fake::countCalls("cuGraphLaunch"), 1u + 2 * 4);
  EXPECT_EQ(fake::countCalls("cuMemAlloc"), allocations);
}

TEST_F(CudaSessionTest, WeightsMayHaveAnotherFloatType) {
  for (Dtype dtype : {Dtype::F16, Dtype::BF16, Dtype::F64}) {
    TensorMap weights = makeWeights();
    for (auto &[name, tensor] : weights)
      tensor = convertFloats(tensor, dtype);
    Session session(loadProgram(), weights);
    EXPECT_EQ(getResult(session.run(makeInputs())), expected);
  }
}

TEST_F(CudaSessionTest, GraphsCanBeTurnedOff) {
  SessionOptions options;
  options.cuda.graphs = false;
  Session session(loadProgram(), makeWeights(), options);
  for (int repeat = 0; repeat < 3; ++repeat)
    EXPECT_EQ(getResult(session.run(makeInputs())), expected);
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 0u);
  EXPECT_EQ(fake::countCalls("cuLaunchKernel scale"), 6u);
}

TEST_F(CudaSessionTest, StepsAllocateNothing) {
  Session session(loadProgram(), makeWeights());
  session.run(makeInputs());
  session.run(makeInputs());
  size_t allocations = fake::countCalls("cuMem");
  size_t copies = fake::countCalls("cuMemcpyHtoD");
  session.run(makeInputs());
  // Two blocks of x go there, one copy of y comes back from each rank.
  EXPECT_EQ(fake::countCalls("cuMemAlloc") + fake::countCalls("cuMemHostAlloc"),
            allocations - fake::countCalls("cuMemcpy") -
                fake::countCalls("cuMemset") + 4);
  EXPECT_EQ(fake::countCalls("cuMemcpyHtoD"), copies + 2);
}

TEST_F(CudaSessionTest, RecordsByEvents) {
  Session session(loadProgram(), makeWeights());
  session.run(makeInputs());
  Recording recording;
  session.run(makeInputs(), {.repeat = 2, .recording = &recording});
  EXPECT_EQ(fake::countCalls("cuGraphLaunch"), 0u);
  for (const std::vector<Slice> &slices : recording.ranks) {
    ASSERT_EQ(slices.size(), 2 * 3u);
    int64_t end = 0;
    for (size_t run = 0; run < 2; ++run) {
      const Slice &op = slices[3 * run], &collective = slices[3 * run + 1],
                  &whole = slices[3 * run + 2];
      EXPECT_LE(end, whole.begin);
      EXPECT_LE(whole.begin, op.begin);
      EXPECT_LE(op.begin, op.end);
      EXPECT_EQ(op.end, collective.begin);
      EXPECT_LE(collective.end, whole.end);
      end = whole.end;
    }
  }
}

static std::shared_ptr<const Artifact> loadStarting() {
  json manifest = makeManifest("started");
  for (json &collective : manifest["programs"][0]["collectives"])
    collective["started"] = true;
  TestDirectory directory;
  return Artifact::load(directory.write(
      "toy.tpx", makeContainer(manifest.dump(), readFile(CUDA_PROGRAM))));
}

/// Run by run, and as a graph, whose nodes the fake device runs in another
/// order where nothing keeps them from it.
TEST_F(CudaSessionTest, StartsCollectivesBesideKernels) {
  for (bool graphs : {false, true}) {
    SessionOptions options;
    options.cuda.graphs = graphs;
    Session session(loadStarting(), makeWeights(), options);
    for (int repeat = 0; repeat < 4; ++repeat) {
      RunResult result = session.run(makeInputs());
      EXPECT_EQ(getResult(result), expected);
      for (int64_t rank = 0; rank < 2; ++rank)
        for (int64_t id = 0; id < 2; ++id)
          EXPECT_EQ(result.counts[rank][id], (CollectiveCount{1, 24}));
    }
  }
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 1u);
}

TEST_F(CudaSessionTest, CommunicationHasAStreamOfItsOwn) {
  auto countStreams = [](std::shared_ptr<const Artifact> artifact) {
    size_t before = fake::countCalls("cuStreamCreate");
    Session session(artifact, makeWeights());
    session.run(makeInputs());
    return fake::countCalls("cuStreamCreate") - before;
  };
  EXPECT_EQ(countStreams(loadStarting()), countStreams(loadProgram()) + 2);
}

TEST_F(CudaSessionTest, RecordsWhatRunsBeside) {
  Session session(loadStarting(), makeWeights());
  session.run(makeInputs());
  Recording recording;
  session.run(makeInputs(), {.repeat = 2, .recording = &recording});
  for (const std::vector<Slice> &slices : recording.ranks) {
    ASSERT_EQ(slices.size(), 2 * 5u);
    for (size_t run = 0; run < 2; ++run) {
      const Slice &product = slices[5 * run], &fill = slices[5 * run + 1],
                  &first = slices[5 * run + 2], &second = slices[5 * run + 3];
      EXPECT_EQ(first.index, 0);
      EXPECT_EQ(second.index, 1);
      EXPECT_EQ(product.end, first.begin);
      EXPECT_LE(first.begin, fill.begin);
      EXPECT_EQ(fill.end, second.begin);
      EXPECT_LE(first.begin, first.waited);
      EXPECT_LE(first.begin, first.end);
      EXPECT_LE(first.waited, second.waited);
    }
  }
}

TEST_F(CudaSessionTest, MovesAndFills) {
  Session session(loadProgram("moves"), makeWeights());
  EXPECT_EQ(getResult(session.run(makeInputs())), std::vector<float>(6, 7));
}

TEST_F(CudaSessionTest, ThreadsOfABlockMeet) {
  Session session(loadProgram("sums"), makeWeights());
  EXPECT_EQ(getResult(session.run(makeInputs())),
            (std::vector<float>{128, 65, 64, 64, 64, 64}));
}

static std::string failureOf(const std::string &entry,
                             SessionOptions options = {}) {
  Session session(loadProgram(entry), makeWeights(), options);
  return errorOf([&] { session.run(makeInputs()); });
}

TEST_F(CudaSessionTest, ReportsIndicesOutOfRange) {
  std::string message = "rank 1 failed: embeddings.word: embedding: index "
                        "30522 is out of range [0, 30522)";
  EXPECT_EQ(failureOf("fail_index"), message);
  // As well where the run is a graph.
  Session session(loadProgram("fail_index"), makeWeights());
  for (int repeat = 0; repeat < 2; ++repeat)
    EXPECT_EQ(errorOf([&] { session.run(makeInputs(), {.warmup = 2}); }),
              message);
}

TEST_F(CudaSessionTest, NamesWhatFails) {
  EXPECT_TRUE(contains(failureOf("fail_kernel"),
                       "the program launches kernel 3, but it has 3"));
  EXPECT_TRUE(contains(failureOf("fail_width"),
                       "tprt_fill: width is 3, expected 1, 2, 4 or 8"));
  fake::failCall("cuLaunchKernel", 1);
  EXPECT_TRUE(contains(failureOf("tpx_main"),
                       "kernel 'scale': cuLaunchKernel: as the fake device "
                       "says (CUDA_ERROR_INVALID_VALUE)"));
  // Who notices first may be another call, of another rank.
  fake::failKernels();
  EXPECT_TRUE(contains(failureOf("tpx_main"), ": as the fake device says "
                                              "(CUDA_ERROR_ILLEGAL_ADDRESS)"));
}

TEST_F(CudaSessionTest, KernelsDoNotReadTheHostsMemory) {
  EXPECT_TRUE(
      contains(failureOf("host_address"), "CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(CudaSessionTest, TimesOutWhereKernelsHang) {
  SessionOptions options;
  options.communicator.timeout = std::chrono::milliseconds(1000);
  fake::hangKernels();
  EXPECT_TRUE(contains(failureOf("tpx_main", options),
                       "no progress on the device for 1 s"));
}

TEST_F(CudaSessionTest, RunsAgainAfterAFailure) {
  Session session(loadProgram(), makeWeights());
  session.run(makeInputs());
  // In the midst of a capture.
  fake::failCall("cuLaunchKernel", 1);
  EXPECT_THROW(session.run(makeInputs()), Error);
  for (int repeat = 0; repeat < 3; ++repeat)
    EXPECT_EQ(getResult(session.run(makeInputs())), expected);
}

TEST_F(CudaSessionTest, OutOfMemory) {
  fake::getSettings().memoryBytes = fake::getAllocatedBytes() + 4096;
  EXPECT_TRUE(contains(failureOf("tpx_main"), "cannot allocate 33554432 bytes "
                                              "on device 0 ('fake device')"));
}

TEST_F(CudaSessionTest, LeavesNothingBehind) {
  size_t before = fake::getAllocatedBytes();
  {
    Session session(loadProgram(), makeWeights());
    session.run(makeInputs(), {.warmup = 3});
  }
  EXPECT_EQ(fake::getAllocatedBytes(), before);
}

TEST_F(CudaSessionTest, ParametersComeBack) {
  Session session(loadProgram(), makeWeights());
  EXPECT_EQ(getElements<float>(session.getParameter("w")),
            getElements<float>(makeWeights()["w"]));
  session.run(makeInputs());
  session.run(makeInputs());
  session.setParameters(
      {{"b", makeTensor<float>(Dtype::F32, {3}, {11, 21, 31})}});
  std::vector<float> shifted = expected;
  for (float &element : shifted)
    element += 2;
  EXPECT_EQ(getResult(session.run(makeInputs())), shifted); // still the graph
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 1u);
}

TEST_F(CudaSessionTest, ManifestAndCodeMustAgree) {
  TestDirectory directory;
  json manifest = makeManifest("tpx_main");
  manifest["target"]["device"] = "tpu";
  EXPECT_TRUE(contains(
      errorOf([&] {
        Artifact::load(directory.write(
            "a.tpx", makeContainer(manifest.dump(), readFile(CUDA_PROGRAM))));
      }),
      "manifest: target.device: found 'tpu', expected 'cuda'"));
  EXPECT_TRUE(
      contains(errorOf([&] {
                 Artifact::load(
                     directory.write(
                         "b.tpx", makeContainer(makeManifest("tpx_main").dump(),
                                                readFile(TOY_PROGRAM))))
                     ->loadCode();
               }),
               "its code has no kernels 'tprt_device_code'"));
}
