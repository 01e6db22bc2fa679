//===- SessionTest.cpp - The toy program from load to report --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Session.h"

#include "ToyManifest.h"
#include "support/Cores.h"
#include "tprt/Report.h"

#include <cfenv>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <thread>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

static std::shared_ptr<const Artifact>
loadToy(const std::string &entry = "tpx_main") {
  TestDirectory directory;
  return Artifact::load(
      directory.write("toy.tpx", makeContainer(makeToyManifest(entry).dump(),
                                               readFile(TOY_PROGRAM))));
}

static TensorMap makeInputs() {
  return {
      {"x", makeTensor<float>(Dtype::F32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}};
}
static TensorMap makeWeights() {
  return {{"w", makeTensor<float>(Dtype::F32, {4, 3},
                                  {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1})},
          {"b", makeTensor<float>(Dtype::F32, {3}, {10, 20, 30})}};
}

TEST(Session, RunsTheToyProgram) {
  Session session(loadToy(), makeWeights());
  RunResult result = session.run(makeInputs(), {.warmup = 1, .repeat = 3});
  EXPECT_EQ(getElements<float>(result.outputs.at("y")),
            (std::vector<float>{15, 26, 37, 23, 34, 45}));
  EXPECT_EQ(result.seconds.size(), 3u);
  // Of the last run alone.
  for (int64_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(result.counts[rank][0], (CollectiveCount{1, 24}));
    EXPECT_EQ(result.counts[rank][1], (CollectiveCount{0, 0}));
  }
}

static std::shared_ptr<const Artifact> loadBuckets() {
  TestDirectory directory;
  return Artifact::load(
      directory.write("toy.tpx", makeContainer(makeToyBuckets().dump(),
                                               readFile(TOY_PROGRAM))));
}

/// Inputs of the first rows of a matrix, and what belongs to them.
static TensorMap makeRows(int64_t count) {
  std::vector<float> elements(count * 4);
  std::iota(elements.begin(), elements.end(), 1.0f);
  return {{"x", makeTensor<float>(Dtype::F32, {count, 4}, elements)}};
}
static std::vector<float> getRows(int64_t count) {
  std::vector<float> all = {15, 26, 37, 23, 34, 45, 31, 42, 53, 39, 50, 61};
  return {all.begin(), all.begin() + count * 3};
}

TEST(Session, RunsTheProgramOfTheInputs) {
  Session session(loadBuckets(), makeWeights());
  for (int64_t count : {2, 4, 4, 2, 4}) {
    RunResult result = session.run(makeRows(count));
    EXPECT_EQ(result.choice.program->name, count == 2 ? "short" : "long");
    EXPECT_EQ(getElements<float>(result.outputs.at("y")), getRows(count));
    // Collectives are those of the artifact, here two for each program.
    for (int64_t rank = 0; rank < 2; ++rank)
      for (int64_t id = 0; id < 4; ++id)
        EXPECT_EQ(result.counts[rank][id].calls, id == (count == 2 ? 0 : 2));
  }
  EXPECT_EQ(errorOf([&] { session.run(makeRows(3)); }),
            "no program takes these inputs:\n"
            "program 'short': input 'x' has type 3x4xf32, expected 2x4xf32\n"
            "program 'long': input 'x' has type 3x4xf32, expected 4x4xf32");
}

TEST(Session, PadsInputsAndCutsOutputs) {
  Session session(loadBuckets(), makeWeights());
  ProgramQuery query{.program = "", .pad = {{"x", 7}}};
  for (int64_t count = 0; count <= 4; ++count) {
    RunOptions options{.query = query, .keepBlocks = true};
    RunResult result = session.run(makeRows(count), options);
    EXPECT_EQ(result.choice.program->name, count <= 2 ? "short" : "long");
    EXPECT_EQ(result.outputs.at("y").shape, (Shape{count, 3}));
    EXPECT_EQ(getElements<float>(result.outputs.at("y")), getRows(count));
    EXPECT_EQ(result.blocks[0].at("y").shape, (Shape{count <= 2 ? 2 : 4, 3}));
  }
  query.program = "long";
  RunResult result = session.run(makeRows(1), {.query = query});
  EXPECT_EQ(result.choice.program->name, "long");
  EXPECT_EQ(getElements<float>(result.outputs.at("y")), getRows(1));
}

/// The parameters, and what is packed of them, are held once.
TEST(Session, ProgramsShareWeights) {
  Session one(loadToy(), makeWeights()), two(loadBuckets(), makeWeights());
  one.run(makeRows(2));
  int64_t packed = one.getPackedWeightBytes();
  EXPECT_GT(packed, 0);
  two.run(makeRows(2));
  EXPECT_EQ(two.getPackedWeightBytes(), packed);
  two.run(makeRows(4));
  EXPECT_EQ(two.getPackedWeightBytes(), packed);
  EXPECT_EQ(two.getWeightBytesByRank(), one.getWeightBytesByRank());
  EXPECT_EQ(two.getCopiedWeightBytes(), one.getCopiedWeightBytes());
  // New values reach both.
  two.setParameters({{"b", makeTensor<float>(Dtype::F32, {3}, {0, 0, 0})}});
  EXPECT_EQ(getElements<float>(two.run(makeRows(4)).outputs.at("y"))[0], 5);
  EXPECT_EQ(getElements<float>(two.run(makeRows(2)).outputs.at("y"))[0], 5);
}

TEST(Session, WeightsMayHaveAnotherFloatType) {
  for (Dtype dtype : {Dtype::F16, Dtype::BF16, Dtype::F64}) {
    TensorMap weights = makeWeights();
    for (auto &[name, tensor] : weights)
      tensor = convertFloats(tensor, dtype);
    Session session(loadToy(), weights);
    EXPECT_EQ(getElements<float>(session.run(makeInputs()).outputs.at("y")),
              (std::vector<float>{15, 26, 37, 23, 34, 45}));
    // Inputs are as the program wants them.
    TensorMap inputs = makeInputs();
    inputs["x"] = convertFloats(inputs["x"], dtype);
    EXPECT_TRUE(
        contains(errorOf([&] { session.run(inputs); }), "expected 2x4xf32"));
  }
}

TEST(Session, RanksHaveCoresOfTheirOwn) {
  std::vector<int> cores = {0, 1, 3, 4, 5};
  EXPECT_EQ(chooseCores(cores, 0, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(chooseCores(cores, 1, 2), (std::vector<int>{3, 4}));
  EXPECT_EQ(chooseCores(cores, 0, 1), cores);
  EXPECT_EQ(chooseCores(cores, 4, 5), std::vector<int>{5});
  EXPECT_EQ(chooseCores(cores, 5, 6), std::vector<int>{}); // too few
}

TEST(Session, SameResultPinnedOrNot) {
  for (bool pinRanks : {false, true})
    for (bool usesCaller : {false, true}) {
      SessionOptions options;
      options.pinRanks = pinRanks;
      options.usesCaller = usesCaller;
      Session session(loadToy(), makeWeights(), options);
      EXPECT_EQ(getElements<float>(session.run(makeInputs()).outputs.at("y")),
                (std::vector<float>{15, 26, 37, 23, 34, 45}));
    }
}

TEST(Session, RunsInTheCallingThread) {
  for (bool usesCaller : {false, true}) {
    SessionOptions options;
    options.usesCaller = usesCaller;
    Session session(loadToy(), makeWeights(), options);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    RunOptions noting{.useOutputs = [&](RankOutputs &) {
      std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
    }};
    // Any thread may be next.
    for (int i = 0; i < 3; ++i) {
      threads.clear();
      std::thread::id caller;
      std::thread([&] {
        caller = std::this_thread::get_id();
        session.run(makeInputs(), noting);
      }).join();
      EXPECT_EQ(threads.size(), 2u);
      EXPECT_EQ(threads.count(caller), usesCaller);
    }
  }
}

/// All ranks compute alike, also if the calling thread rounds otherwise.
TEST(Session, FloatsDoNotDependOnTheCaller) {
  auto seeModes = [](Session &session) {
    std::mutex mutex;
    std::set<int> modes;
    session.run(makeInputs(), {.useOutputs = [&](RankOutputs &) {
                  std::lock_guard<std::mutex> lock(mutex);
                  modes.insert(std::fegetround());
                }});
    return modes;
  };
  for (bool usesCaller : {false, true}) {
    SessionOptions options;
    options.usesCaller = usesCaller;
    Session session(loadToy(), makeWeights(), options);
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    std::set<int> modes = seeModes(session);
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(modes, std::set<int>{FE_TONEAREST});
  }
}

/// Also if the run fails.
TEST(Session, LeavesTheCallingThreadItsCores) {
  auto getCores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
    return std::string(reinterpret_cast<const char *>(&set), sizeof(set));
  };
  std::string before = getCores();
  Session session(loadToy(), makeWeights());
  Session failing(loadToy("fail_status"), makeWeights());
  for (int i = 0; i < 3; ++i) {
    // Starts on each core in turn.
    PinnedThread pinned({getUsableCores()[i % getUsableCores().size()]});
    std::string within = getCores();
    session.run(makeInputs());
    EXPECT_EQ(getCores(), within);
    EXPECT_NE(errorOf([&] { failing.run(makeInputs()); }), "");
    EXPECT_EQ(getCores(), within);
  }
  EXPECT_EQ(getCores(), before);
}

TEST(Session, RecordsMeasuredRuns) {
  Session session(loadToy(), makeWeights());
  Recording recording;
  RunOptions options{.warmup = 2, .repeat = 2, .recording = &recording};
  session.run(makeInputs(), options);
  session.run(makeInputs(), options); // goes on
  session.run(makeInputs());          // isn't recorded
  EXPECT_EQ(recording.numRuns, 4);
  ASSERT_EQ(recording.ranks.size(), 2u);
  for (const std::vector<Slice> &slices : recording.ranks) {
    ASSERT_EQ(slices.size(), 4 * 3u);
    int64_t end = 0;
    for (int64_t run = 0; run < 4; ++run) {
      const Slice &op = slices[3 * run], &collective = slices[3 * run + 1],
                  &whole = slices[3 * run + 2];
      EXPECT_EQ(op.kind, Slice::Kind::Op);
      EXPECT_EQ(op.index, 0);
      EXPECT_EQ(collective.kind, Slice::Kind::Collective);
      EXPECT_EQ(collective.bytes, 24);
      EXPECT_EQ(whole.kind, Slice::Kind::Run);
      EXPECT_EQ(whole.index, run);
      EXPECT_LE(end, whole.begin);
      EXPECT_LE(whole.begin, op.begin);
      EXPECT_EQ(op.end, collective.begin); // an op ends where the next begins
      EXPECT_LE(collective.begin, collective.end);
      EXPECT_LE(collective.end, whole.end);
      end = whole.end;
    }
  }
}

/// An entry point that starts collective 0, or 2, a broadcast.
static std::shared_ptr<const Artifact> loadStarting(const std::string &entry) {
  json manifest = makeToyManifest(entry);
  json &collectives = manifest["programs"][0]["collectives"];
  collectives[0]["started"] = true;
  collectives.push_back(collectives[0]);
  collectives[2]["kind"] = "broadcast";
  collectives[2]["root"] = 0;
  collectives[2]["bytes_by_rank"] = {0, 24};
  TestDirectory directory;
  return Artifact::load(directory.write(
      "toy.tpx", makeContainer(manifest.dump(), readFile(TOY_PROGRAM))));
}

TEST(Session, StartsCollectives) {
  Session session(loadStarting("started"), makeWeights());
  Recording recording;
  RunResult result = session.run(
      makeInputs(), {.warmup = 1, .repeat = 3, .recording = &recording});
  EXPECT_EQ(getElements<float>(result.outputs.at("y")),
            (std::vector<float>{15, 26, 37, 23, 34, 45}));
  for (int64_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(result.counts[rank][0], (CollectiveCount{1, 24}));
    const std::vector<Slice> &slices = recording.ranks[rank];
    ASSERT_EQ(slices.size(), 3 * 4u);
    for (int64_t run = 0; run < 3; ++run) {
      const Slice &before = slices[4 * run], &beside = slices[4 * run + 1],
                  &collective = slices[4 * run + 2];
      EXPECT_EQ(collective.kind, Slice::Kind::Collective);
      EXPECT_EQ(collective.bytes, 24);
      EXPECT_EQ(before.end, collective.begin);
      EXPECT_LE(collective.begin, beside.begin);
      EXPECT_EQ(beside.end, collective.waited);
      EXPECT_LE(*collective.waited, collective.end);
    }
  }
}

TEST(Session, ProgramsStartAndWaitOnce) {
  auto failureOf = [](const std::string &entry) {
    Session session(loadStarting(entry), makeWeights());
    return errorOf([&] { session.run(makeInputs()); });
  };
  auto expectFailure = [&](const std::string &entry,
                           const std::string &expected) {
    std::string error = failureOf(entry);
    EXPECT_TRUE(contains(error, expected)) << error;
  };
  expectFailure("fail_started_twice",
                " failed in collective 0 (all_reduce of 'mlp.down'): the "
                "program starts it again before it has waited for it");
  expectFailure("fail_never_started",
                " failed in collective 0 (all_reduce of 'mlp.down'): the "
                "program waits for it, but hasn't started it");
  expectFailure("fail_never_waited",
                "the program hasn't waited for collective 0 (all_reduce of "
                "'mlp.down')");
  expectFailure("fail_unlisted_start",
                " failed in collective 1 (all_reduce of 'mlp.up'): the program "
                "starts it, but its manifest doesn't say that it is started");
  expectFailure("fail_start_in_place",
                " failed in collective 2 (broadcast of 'mlp.down'): only an "
                "all_reduce can be started in place");
}

TEST(Session, RunsAgainWithOtherInputs) {
  Session session(loadToy(), makeWeights());
  session.run(makeInputs());
  TensorMap zeros = {
      {"x", makeTensor<float>(Dtype::F32, {2, 4}, std::vector<float>(8))}};
  EXPECT_EQ(getElements<float>(session.run(zeros).outputs.at("y")),
            (std::vector<float>{10, 20, 30, 10, 20, 30}));
}

TEST(Session, ReadsOnlyItsSlices) {
  Session session(loadToy(), makeWeights());
  // Two rows of w and all of b.
  EXPECT_EQ(session.getWeightBytesByRank(),
            (std::vector<int64_t>{24 + 12, 24 + 12}));
  // Rank 0's rows and b lie aligned where they are; rank 1's rows do not.
  EXPECT_EQ(session.getCopiedWeightBytes(), 24);
}

/// What the program only multiplies by isn't copied, but packed from where it
/// is, in its own type, or read when a library multiplies.
TEST(Session, RightOperandsAreNotCopied) {
  nlohmann::json manifest = makeToyManifest("tpx_main");
  manifest["programs"][0]["right_operands"] = {0};
  TestDirectory directory;
  auto load = [&] {
    return Artifact::load(directory.write(
        "toy.tpx", makeContainer(manifest.dump(), readFile(TOY_PROGRAM))));
  };
  std::vector<float> expected = {15, 26, 37, 23, 34, 45};
  for (Dtype dtype : {Dtype::F32, Dtype::BF16, Dtype::F64})
    for (bool usesLibrary : {false, true}) {
      TensorMap weights = makeWeights();
      weights["w"] = convertFloats(weights["w"], dtype);
      SessionOptions options;
      if (usesLibrary)
        options.gemm.library = GemmLibrary::OpenBlas;
      Session session(load(), weights, options);
      EXPECT_EQ(session.getCopiedWeightBytes(), 0);
      for (int run = 0; run < 2; ++run)
        EXPECT_EQ(getElements<float>(session.run(makeInputs()).outputs.at("y")),
                  expected);
      TensorMap original = makeWeights();
      EXPECT_EQ(getElements<float>(session.getParameter("w")),
                getElements<float>(original.at("w")));
      std::vector<float> rows = getElements<float>(original.at("w"));
      EXPECT_EQ(getElements<float>(session.getParameterBlock("w", 1)),
                std::vector<float>(rows.begin() + 6, rows.end()));
      session.setParameters({{"w", makeTensor<float>(Dtype::F32, {4, 3},
                                                     std::vector<float>(12))}});
      EXPECT_EQ(getElements<float>(session.run(makeInputs()).outputs.at("y")),
                (std::vector<float>{10, 20, 30, 10, 20, 30}));
    }
}

TEST(Session, ReplicatedWeightsAreNeverCopiedTwice) {
  TensorMap weights = makeWeights();
  auto buffer = allocateAligned(64);
  std::memcpy(buffer.get() + 4, weights["b"].data.get(), 12);
  weights["b"].data = {buffer, buffer.get() + 4}; // off the alignment
  Session session(loadToy(), weights);
  EXPECT_EQ(session.getCopiedWeightBytes(), 24 + 12);
  EXPECT_EQ(getElements<float>(session.run(makeInputs()).outputs.at("y")),
            (std::vector<float>{15, 26, 37, 23, 34, 45}));
}

TEST(Session, AllWeightProblemsAtOnce) {
  TensorMap weights;
  weights["w"] = makeTensor<float>(Dtype::F32, {3, 4}, std::vector<float>(12));
  weights["bb"] = makeTensor<float>(Dtype::F32, {3}, {1, 2, 3});
  EXPECT_EQ(errorOf([&] { Session(loadToy(), weights); }),
            "weight 'w' has type 3x4xf32, expected 4x3xf32\n"
            "missing weight 'b' of type 3xf32 (did you mean 'bb'?)");
  EXPECT_EQ(checkTensors(loadToy()->getManifest().parameters, weights, "weight",
                         /*allowUnused=*/false),
            "weight 'w' has type 3x4xf32, expected 4x3xf32\n"
            "missing weight 'b' of type 3xf32 (did you mean 'bb'?)\n"
            "unknown weight 'bb', expected 'w', 'b' (did you mean 'b'?)");
}

TEST(Session, AllInputProblemsAtOnce) {
  Session session(loadToy(), makeWeights());
  TensorMap inputs = {{"x", makeTensor<double>(Dtype::F64, {1}, {1})},
                      {"mask", makeTensor<uint8_t>(Dtype::I1, {1}, {1})}};
  EXPECT_EQ(errorOf([&] { session.run(inputs); }),
            "input 'x' has type 1xf64, expected 2x4xf32\n"
            "unknown input 'mask', expected 'x'");
}

/// What run() says when the ranks of this entry point fail.
static std::string failureOf(const std::string &entry,
                             SessionOptions options = {}) {
  Session session(loadToy(entry), makeWeights(), options);
  try {
    session.run(makeInputs());
  } catch (const Error &error) {
    EXPECT_EQ(error.getKind(), ErrorKind::Execution);
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

TEST(Session, FailuresNameRankCollectiveAndModule) {
  EXPECT_EQ(failureOf("fail_index"),
            "rank 1 failed after collective 0 (all_reduce of 'mlp.down'): "
            "embeddings.word: embedding: index 30522 is out of range "
            "[0, 30522)");
  EXPECT_EQ(failureOf("fail_status"),
            "rank 0 failed: the program returned status 77");
  EXPECT_TRUE(contains(failureOf("fail_unknown_collective"),
                       "the program runs collective 99, but its manifest "
                       "lists 2"));
  EXPECT_TRUE(
      contains(failureOf("fail_order"), "the ranks' programs don't match"));
  // Rank 1 waits for the end of the run, which is no collective.
  EXPECT_EQ(failureOf("fail_early_end"),
            "rank 1 has ended while others wait for it: rank 0 waits in "
            "collective 0 (all_reduce of 'mlp.down'); rank 1 waits for the "
            "run's start or end");
  EXPECT_TRUE(contains(failureOf("fail_gemm"),
                       "tprt_gemm: dtype is not f32, f64, f16 or bf16"));
}

TEST(Session, Timeout) {
  SessionOptions options;
  options.communicator.timeout = std::chrono::milliseconds(1000);
  EXPECT_EQ(failureOf("fail_hang", options),
            "no progress for 1 s: rank 0 waits in collective 0 (all_reduce "
            "of 'mlp.down'); rank 1 computes");
}

TEST(Session, RunsAfterAFailure) {
  Session session(loadToy("fail_status"), makeWeights());
  for (int repeat = 0; repeat < 3; ++repeat)
    EXPECT_THROW(session.run(makeInputs()), Error);
}

TEST(Report, CountsByRankAndCollective) {
  Session session(loadToy(), makeWeights());
  RunOptions options{.warmup = 0, .repeat = 2};
  RunResult result = session.run(makeInputs(), options);
  result.seconds = {3, 1};
  json report = json::parse(makeRunReport("toy.tpx", session, result, options));
  EXPECT_EQ(report["schema"], 1);
  EXPECT_EQ(report["world_size"], 2);
  EXPECT_EQ(report["arena_bytes"], 64);
  EXPECT_EQ(report["seconds"]["median"], 2);
  EXPECT_EQ(report["seconds"]["min"], 1);
  EXPECT_EQ(report["seconds"]["max"], 3);
  EXPECT_EQ(report["total"]["bytes"], 48);
  EXPECT_EQ(report["ranks"][1]["weight_bytes"], 36);
  EXPECT_EQ(report["ranks"][1]["collectives"][0],
            json::parse(R"({"id": 0, "kind": "all_reduce", "fqn": "mlp.down",
                            "calls": 1, "bytes": 24})"));
}

/// The next program's ops follow in the manifest's list.
TEST(Session, ProgramsRunOnlyTheirOps) {
  json manifest = makeToyBuckets();
  manifest["programs"][0]["ops"] = json::array();
  TestDirectory directory;
  Session session(
      Artifact::load(directory.write(
          "toy.tpx", makeContainer(manifest.dump(), readFile(TOY_PROGRAM)))),
      makeWeights());
  Recording recording;
  EXPECT_TRUE(contains(
      errorOf([&] { session.run(makeRows(2), {.recording = &recording}); }),
      "the program runs op 0, but its manifest lists 0"));
}

TEST(Report, IsOfTheProgramThatHasRun) {
  Session session(loadBuckets(), makeWeights());
  Recording recording;
  RunOptions options{.recording = &recording};
  RunResult result = session.run(makeRows(4), options);
  const Manifest &manifest = session.getManifest();
  Profile profile(manifest, recording);
  json report =
      json::parse(makeRunReport("toy.tpx", session, result, options, &profile));
  EXPECT_EQ(report["program"], "long");
  EXPECT_EQ(report["arena_bytes"], 128);
  EXPECT_EQ(report["ranks"][0]["input_bytes"], 32);
  EXPECT_EQ(report["ranks"][0]["collectives"].size(), 2u);
  EXPECT_EQ(report["ranks"][0]["collectives"][0]["id"], 0);
  EXPECT_EQ(report["ranks"][0]["collectives"][0]["bytes"], 48);
  EXPECT_EQ(report["profile"]["rows"].size(), 2u);
  std::string text = describe(manifest);
  EXPECT_TRUE(contains(text, "program: short\narena: 64 bytes\n"));
  EXPECT_TRUE(contains(text, "  x  4x4xf32  Shard(1), sizes s0 x 4\n"));
  EXPECT_TRUE(contains(text, "  0  all_reduce  4x3xf32 -> 4x3xf32  48 bytes "));
}

TEST(Report, DescribesTheProgram) {
  std::string text = describe(loadToy()->getManifest());
  EXPECT_TRUE(contains(text, "mesh: mesh (tp = 2), 2 ranks"));
  EXPECT_TRUE(contains(text, "  x  2x4xf32  Shard(1)\n"));
  EXPECT_TRUE(contains(text, "  b  3xf32    Replicate\n"));
  EXPECT_TRUE(contains(text, "  0  all_reduce  2x3xf32 -> 2x3xf32  24 bytes "
                             "per rank  mlp.down\n"));
}
