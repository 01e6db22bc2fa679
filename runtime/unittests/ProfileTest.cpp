//===- ProfileTest.cpp - Recordings, traces, profiles and timings ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Profile.h"

#include "TestUtils.h"
#include "tprt/Report.h"

#include <map>
#include <nlohmann/json.hpp>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;
using Kind = Slice::Kind;

/// Two ranks, one op and one all-reduce of 8 bytes.
static Manifest makeManifest() {
  Manifest manifest;
  manifest.worldSize = 2;
  manifest.ops.push_back(
      {"layers.0.w", "linear", "gemm", 4000, 1000, Dtype::F32});
  manifest.ops.push_back({"layers.1.w", "linear", "gemm", 4000, 1000, {}});
  Collective collective{};
  collective.kind = CollectiveKind::AllReduce;
  collective.dtype = Dtype::F32;
  collective.operandShapes = collective.resultShapes = {{2}, {2}};
  collective.groups = {{0, 1}};
  collective.fqn = "layers.0.w";
  manifest.collectives.push_back(collective);
  return manifest;
}

/// Rank 0 comes to the collective at 2 us, rank 1 at 3 us; both leave at 5 us.
static Recording makeRecording() {
  Recording recording;
  recording.numRuns = 1;
  for (int64_t rank = 0; rank < 2; ++rank)
    recording.ranks.push_back(
        {{Kind::Op, 0, 0, 1000, 2000 + 1000 * rank},
         {Kind::Collective, 0, 0, 2000 + 1000 * rank, 5000, 8},
         {Kind::Op, 1, 0, 5000, 6000},
         {Kind::Run, 0, 0, 1000, 7000}});
  return recording;
}

TEST(Profile, SumsByModuleAndKind) {
  Profile profile(makeManifest(), makeRecording());
  EXPECT_DOUBLE_EQ(profile.seconds, 6e-6);
  ASSERT_EQ(profile.rows.size(), 3u);
  const ProfileRow &collective = profile.rows[0];
  EXPECT_EQ(collective.kind, "all_reduce");
  EXPECT_EQ(collective.fqn, "layers.0.w");
  EXPECT_DOUBLE_EQ(collective.calls, 1);
  EXPECT_DOUBLE_EQ(collective.seconds, 2.5e-6); // 3 and 2
  EXPECT_DOUBLE_EQ(collective.waiting, 0.5e-6); // 1 and 0
  EXPECT_DOUBLE_EQ(collective.bytes, 8);
  EXPECT_FALSE(collective.limit);
  EXPECT_EQ(profile.rows[1].fqn, "layers.0.w");
  EXPECT_DOUBLE_EQ(profile.rows[1].seconds, 1.5e-6);
  EXPECT_DOUBLE_EQ(profile.rows[1].flops, 4000);
}

TEST(Profile, LayersShareALine) {
  std::string table = Profile(makeManifest(), makeRecording()).toTable();
  EXPECT_TRUE(contains(table, "layers.*.w: linear"));
  EXPECT_FALSE(contains(table, "layers.0"));
  // 8000 FLOP in 2.5 us; the collective's 8 bytes in 2 us after the wait.
  EXPECT_TRUE(contains(table, " 3.2 "));
  EXPECT_TRUE(contains(table, "0.004"));
  EXPECT_TRUE(contains(table, "1 us  16.7%")); // of 6 us
  EXPECT_FALSE(contains(table, "of limit"));
}

static const char *const machineText = R"({
  "device": {"flops": {"f32": 4e9, "bf16": 2e9}, "memory_bandwidth": 1e10},
  "node": {"devices": 2, "memory_bandwidth": 1.6e10},
  "links": [{"collectives": [
    {"kind": "all_reduce", "ranks": 2, "latency": 1e-6, "bandwidth": 8e6},
    {"kind": "all_reduce", "ranks": 8, "latency": 9e-6, "bandwidth": 8e6}]}]})";

TEST(Machine, LimitsOfComputationAndCollectives) {
  TestDirectory directory;
  Machine machine = Machine::read(directory.write("m.json", machineText));
  // Products: each of two ranks has a core.
  EXPECT_DOUBLE_EQ(machine.getComputeLimit(4e9, 0, Dtype::F32, 2), 1);
  EXPECT_DOUBLE_EQ(machine.getComputeLimit(4e9, 0, Dtype::BF16, 2), 2);
  EXPECT_DOUBLE_EQ(machine.getComputeLimit(4e9, 0, Dtype::F32, 1), 0.5);
  EXPECT_DOUBLE_EQ(machine.getComputeLimit(4e9, 0, Dtype::F32, 4), 2);
  // Memory: two ranks share what the machine has, one has a core's two times,
  // but no more than the machine's.
  EXPECT_DOUBLE_EQ(machine.getComputeLimit(0, 8e9, Dtype::F32, 2), 1);
  EXPECT_DOUBLE_EQ(machine.getComputeLimit(0, 16e9, Dtype::F32, 1), 1);
  // The measurement with the nearest number of ranks.
  EXPECT_DOUBLE_EQ(*machine.getCollectiveLimit(CollectiveKind::AllReduce, 8, 3),
                   2e-6);
  EXPECT_DOUBLE_EQ(
      *machine.getCollectiveLimit(CollectiveKind::AllReduce, 8, 16), 10e-6);
  EXPECT_FALSE(machine.getCollectiveLimit(CollectiveKind::Permute, 8, 2));

  Profile profile(makeManifest(), makeRecording(), &machine);
  EXPECT_DOUBLE_EQ(*profile.rows[0].limit, 2e-6);
  EXPECT_DOUBLE_EQ(*profile.rows[1].limit, 1e-6);
  EXPECT_TRUE(contains(profile.toTable(), "of limit"));
}

TEST(Machine, SaysWhatIsWrong) {
  TestDirectory directory;
  auto errorWith = [&](const char *path, const char *value) {
    json machine = json::parse(machineText);
    machine[json::json_pointer(path)] = json::parse(value);
    std::string file = directory.write("m.json", machine.dump());
    return errorOf([&] { Machine::read(file); });
  };
  EXPECT_TRUE(contains(errorWith("/device/flops", R"({"f31": 1})"),
                       "device.flops: unknown dtype 'f31'"));
  EXPECT_TRUE(contains(errorWith("/device/flops", R"({"f64": 1})"),
                       "device.flops: missing 'f32'"));
  EXPECT_TRUE(contains(errorWith("/node/devices", "0"),
                       "found 0, expected a positive number"));
  EXPECT_TRUE(contains(errorWith("/links", "[]"),
                       "is not a description that tp-run --calibrate wrote"));
  std::string text = directory.write("m.yaml", "device: {flops: 1}");
  EXPECT_TRUE(contains(errorOf([&] { Machine::read(text); }),
                       "is not a description that tp-run --calibrate wrote"));
}

TEST(Trace, ArrowsFollowTheOrderOfArrival) {
  json trace = json::parse(makeTrace(makeManifest(), makeRecording()));
  std::vector<json> flows, slices;
  for (const json &event : trace["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f")
      flows.push_back(event);
    if (event["ph"] == "X")
      slices.push_back(event);
  }
  ASSERT_EQ(flows.size(), 2u);
  EXPECT_EQ(flows[0]["ph"], "s");
  EXPECT_EQ(flows[0]["pid"], 0);
  EXPECT_DOUBLE_EQ(flows[0]["ts"].get<double>(), 1.0); // us after the start
  EXPECT_EQ(flows[1]["pid"], 1);
  EXPECT_EQ(flows[1]["bp"], "e");
  ASSERT_EQ(slices.size(), 8u);
  EXPECT_EQ(slices[0]["name"], "linear layers.0.w");
  EXPECT_DOUBLE_EQ(slices[0]["args"]["GFLOP/s"].get<double>(), 4);
  EXPECT_EQ(slices[1]["args"]["kind"], "all_reduce");
  EXPECT_EQ(slices[1]["args"]["bytes"], 8);
}

/// Rank 0 starts two all-reduces at 1 and 2 us and computes until 4 us, where
/// the first has ended; it waits for the second from 5 to 6 us. Rank 1 has
/// started both by 3 us.
static Recording makeOverlapped() {
  Recording recording;
  recording.numRuns = 1;
  recording.ranks = {{{Kind::Op, 0, 0, 1000, 4000},
                      {Kind::Collective, 0, 0, 1000, 3500, 8, 4000},
                      {Kind::Op, 1, 0, 4000, 5000},
                      {Kind::Collective, 1, 0, 2000, 6000, 8, 5000},
                      {Kind::Collective, 2, 0, 6000, 7000, 8},
                      {Kind::Run, 0, 0, 1000, 7000}},
                     {{Kind::Collective, 0, 0, 2000, 3500, 8, 2500},
                      {Kind::Collective, 1, 0, 3000, 6000, 8, 6000},
                      {Kind::Collective, 2, 0, 6500, 7000, 8},
                      {Kind::Run, 0, 0, 1000, 7000}}};
  return recording;
}

static Manifest makeOverlappedManifest() {
  Manifest manifest = makeManifest();
  Collective collective = manifest.collectives[0];
  for (const char *fqn : {"second", "third"}) {
    collective.fqn = fqn;
    manifest.collectives.push_back(collective);
  }
  return manifest;
}

TEST(Profile, CountsWhatComputationDoesNotHide) {
  Profile profile(makeOverlappedManifest(), makeOverlapped());
  auto find = [&](const std::string &fqn) {
    for (const ProfileRow &row : profile.rows)
      if (row.fqn == fqn && row.kind == "all_reduce")
        return row;
    ADD_FAILURE() << "no row of " << fqn;
    return ProfileRow();
  };
  // Rank 0's had ended before it was waited for; rank 1 waits 1 us, for nobody.
  EXPECT_DOUBLE_EQ(find("layers.0.w").seconds, 0.5e-6);
  EXPECT_DOUBLE_EQ(find("layers.0.w").waiting, 0);
  EXPECT_DOUBLE_EQ(find("second").seconds, 0.5e-6);
  EXPECT_DOUBLE_EQ(find("second").waiting, 0);
  EXPECT_DOUBLE_EQ(find("third").waiting, 0.25e-6);
}

/// What is under way at the same time has a track of its own, and the arrows go
/// there.
TEST(Trace, CollectivesBesideEachOther) {
  json trace =
      json::parse(makeTrace(makeOverlappedManifest(), makeOverlapped()));
  std::map<std::string, std::vector<int>> tracks, arrows;
  std::vector<std::string> names;
  for (const json &event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "collective") {
      tracks[event["args"]["fqn"]].push_back(event["tid"]);
      if (event["pid"] == 0 && event["args"]["fqn"] == "second") {
        EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 4);
        EXPECT_DOUBLE_EQ(event["args"]["waited_us"].get<double>(), 1);
      }
    }
    if (event["ph"] == "s" || event["ph"] == "f")
      arrows[event["id"].dump()].push_back(event["tid"]);
    if (event["ph"] == "M" && event["name"] == "thread_name" &&
        event["pid"] == 0)
      names.push_back(event["args"]["name"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"compute", "communication",
                                             "communication 2"}));
  EXPECT_EQ(tracks["layers.0.w"], (std::vector<int>{2, 2}));
  EXPECT_EQ(tracks["second"], (std::vector<int>{3, 3}));
  EXPECT_EQ(tracks["third"], (std::vector<int>{2, 2}));
  EXPECT_EQ(arrows["2"], (std::vector<int>{3, 3}));
}

/// An artifact whose code and manifest don't belong together.
TEST(Trace, RefusesOpsThatTheManifestLacks) {
  Recording recording = makeRecording();
  recording.ranks[1][2].index = 2;
  EXPECT_EQ(errorOf([&] { makeTrace(makeManifest(), recording); }),
            "the program ran op 2, but its manifest lists 2");
}

TEST(Timing, Percentiles) {
  std::vector<double> seconds;
  for (int i = 100; i > 0; --i)
    seconds.push_back(1 + i * 1e-4);
  Timing timing = summarize(seconds);
  EXPECT_DOUBLE_EQ(timing.min, 1.0001);
  EXPECT_DOUBLE_EQ(timing.median, 1.00505);
  EXPECT_DOUBLE_EQ(timing.p90, 1.009);
  EXPECT_DOUBLE_EQ(timing.p99, 1.0099);
  EXPECT_DOUBLE_EQ(timing.max, 1.01);
  EXPECT_EQ(timing.note, "");
}

TEST(Timing, SaysWhenNotToTrustIt) {
  EXPECT_TRUE(contains(summarize({1, 1, 1}).note, "fewer than 10 runs"));
  std::vector<double> seconds(20, 1.0);
  for (int i = 0; i < 4; ++i)
    seconds[i] = 1.5;
  EXPECT_TRUE(contains(summarize(seconds).note,
                       "one run in ten takes 50% longer than the median"));
  EXPECT_TRUE(contains(describe(summarize(seconds)),
                       "20 runs: median 1000 ms, min 1000 ms, p90 1500 ms, "
                       "p99 1500 ms\nnote: "));
}
