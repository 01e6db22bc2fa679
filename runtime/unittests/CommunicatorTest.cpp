//===- CommunicatorTest.cpp - Communicators of one process ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Ranks.h"
#include "TestUtils.h"

#include <cmath>

using namespace tprt;
using namespace tprt::test;
using std::chrono::milliseconds;

/// An average of narrow integers has the upper bits of their sum.
TEST(LocalCommunicator, AveragesOfNarrowIntegers) {
  auto average = [](Dtype dtype, auto element, double lowest, double highest) {
    using T = decltype(element);
    Collective c{.kind = CollectiveKind::AllReduce, .dtype = dtype};
    c.reduction = Reduction::Avg;
    c.operandShapes = c.resultShapes = std::vector<Shape>(3, Shape{2});
    c.groups = {{0, 1, 2}};
    Manifest manifest = makeManifest(3, {c});
    runRanks(manifest, {}, [&](Communicator &communicator) {
      std::vector<T> data = {static_cast<T>(lowest), static_cast<T>(highest)};
      auto *bytes = reinterpret_cast<std::byte *>(data.data());
      runCollective(communicator, 0, bytes, sizeof(T) * 2, bytes,
                    sizeof(T) * 2);
      EXPECT_EQ(data[0], static_cast<T>(lowest));
      EXPECT_EQ(data[1], static_cast<T>(highest));
    });
  };
  average(Dtype::I8, int8_t(), -128, 127);
  average(Dtype::I16, int16_t(), -32768, 32767);
  average(Dtype::UI8, uint8_t(), 0, 255);
}

/// Floating-point sums depend on their order: the definition's is the group's.
TEST(LocalCommunicator, SumsInGroupOrder) {
  Collective c{.kind = CollectiveKind::AllReduce, .dtype = Dtype::F32};
  c.operandShapes = c.resultShapes = std::vector<Shape>(3, Shape{3000});
  c.groups = {{2, 0, 1}};
  Manifest manifest = makeManifest(3, {c});
  auto element = [](int64_t rank, int64_t i) {
    return std::ldexp(1.0f + static_cast<float>(i) / 3000, rank * 20 - 10) *
           (rank == 1 ? -1.0f : 1.0f);
  };
  for (int repeat = 0; repeat < 20; ++repeat)
    runRanks(manifest, {}, [&](Communicator &communicator) {
      std::vector<float> data(3000);
      for (int64_t i = 0; i < 3000; ++i)
        data[i] = element(communicator.getRank(), i);
      auto *bytes = reinterpret_cast<std::byte *>(data.data());
      runCollective(communicator, 0, bytes, 12000, bytes, 12000);
      for (int64_t i = 0; i < 3000; ++i)
        ASSERT_EQ(data[i], (element(2, i) + element(0, i)) + element(1, i));
    });
}

TEST(LocalCommunicator, MaxPropagatesNaN) {
  Collective c{.kind = CollectiveKind::AllReduce, .dtype = Dtype::F32};
  c.reduction = Reduction::Max;
  c.operandShapes = c.resultShapes = std::vector<Shape>(2, Shape{2});
  c.groups = {{0, 1}};
  runRanks(makeManifest(2, {c}), {}, [&](Communicator &communicator) {
    float data[2] = {0, 0};
    data[communicator.getRank()] = NAN;
    auto *bytes = reinterpret_cast<std::byte *>(data);
    runCollective(communicator, 0, bytes, sizeof(data), bytes, sizeof(data));
    EXPECT_TRUE(std::isnan(data[0]) && std::isnan(data[1]));
  });
}

static Collective makeNamed(const std::string &fqn, int64_t worldSize) {
  Collective c{.kind = CollectiveKind::AllReduce, .dtype = Dtype::F32};
  c.operandShapes = c.resultShapes = std::vector<Shape>(worldSize, Shape{4});
  c.groups = {firstRanks(worldSize)};
  c.fqn = fqn;
  return c;
}

/// Collectives of overlapping groups follow each other at once: nobody
/// overwrites what others still read.
TEST(LocalCommunicator, OverlappingGroups) {
  std::vector<Collective> collectives;
  std::vector<std::vector<std::vector<int64_t>>> groupings = {
      {{0, 1, 2, 3}}, {{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}};
  for (const auto &groups : groupings) {
    collectives.push_back(makeNamed("mlp", 4));
    collectives.back().groups = groups;
  }
  runRanks(makeManifest(4, collectives), {}, [&](Communicator &communicator) {
    float data[4];
    auto *bytes = reinterpret_cast<std::byte *>(data);
    auto run = [&](int64_t id, float value) {
      std::fill_n(data, 4, value);
      runCollective(communicator, id, bytes, sizeof(data), bytes, sizeof(data));
      return data[3];
    };
    for (int round = 0; round < numRounds; ++round) {
      float rank = communicator.getRank();
      ASSERT_EQ(run(1, round + rank), 2 * round + (rank < 2 ? 1 : 5));
      ASSERT_EQ(run(1, rank), rank < 2 ? 1 : 5);
      ASSERT_EQ(run(2, round), 2 * round);
      ASSERT_EQ(run(0, round + rank), 4 * round + 6);
    }
  });
}

/// Many more ranks than cores, many rounds: ends, and soon.
TEST(LocalCommunicator, OversubscribedRanks) {
  Manifest manifest = makeManifest(24, {makeNamed("mlp", 24)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        float data[4];
        auto *bytes = reinterpret_cast<std::byte *>(data);
        for (int round = 0; round < numRounds / 20; ++round) {
          std::fill_n(data, 4, 1.0f);
          runCollective(communicator, 0, bytes, sizeof(data), bytes,
                        sizeof(data));
          ASSERT_EQ(data[3], 24.0f);
        }
      });
  EXPECT_EQ(errors, std::vector<std::string>(24));
}

TEST(LocalCommunicator, AbortReleasesTheOthers) {
  Manifest manifest = makeManifest(3, {makeNamed("mlp", 3)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        if (communicator.getRank() == 1) {
          std::this_thread::sleep_for(milliseconds(20));
          communicator.abort("rank 1 failed: out of luck");
          return;
        }
        communicator.run(0, data, data);
      });
  EXPECT_EQ(errors[0], "rank 1 failed: out of luck");
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[2], "rank 1 failed: out of luck");
}

TEST(LocalCommunicator, AbortIsSeenLater) {
  Manifest manifest = makeManifest(1, {makeNamed("mlp", 1)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        communicator.abort("first");
        communicator.abort("second");
        communicator.run(0, data, data);
      });
  EXPECT_EQ(errors[0], "first");
}

TEST(LocalCommunicator, TimeoutNamesWhoWaitsWhere) {
  Manifest manifest =
      makeManifest(2, {makeNamed("mlp", 2), makeNamed("attention", 2)});
  CommunicatorOptions options;
  options.timeout = milliseconds(1000);
  std::vector<std::string> errors =
      runRanks(manifest, options, [&](Communicator &communicator) {
        std::byte data[16] = {};
        communicator.run(0, data, data);
        if (communicator.getRank() == 1)
          std::this_thread::sleep_for(milliseconds(4000));
        communicator.run(1, data, data);
      });
  for (const std::string &error : errors)
    EXPECT_EQ(error,
              "no progress for 1 s: rank 0 waits in collective 1 "
              "(all_reduce of 'attention'); rank 1 computes after collective "
              "0 (all_reduce of 'mlp')");
}

TEST(LocalCommunicator, EndedRankIsNamedAtOnce) {
  Manifest manifest = makeManifest(2, {makeNamed("mlp", 2)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        if (communicator.getRank() == 0)
          communicator.run(0, data, data);
      });
  EXPECT_EQ(errors[0], "rank 1 has ended while others wait for it: rank 0 "
                       "waits in collective 0 (all_reduce of 'mlp'); rank 1 "
                       "has ended");
}

TEST(LocalCommunicator, DifferentOrderIsNoticed) {
  Manifest manifest =
      makeManifest(2, {makeNamed("mlp", 2), makeNamed("attention", 2)});
  std::vector<std::string> errors =
      runRanks(manifest, {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        communicator.run(communicator.getRank(), data, data);
      });
  EXPECT_TRUE(contains(errors[0], "the ranks' programs don't match: rank "));
  EXPECT_TRUE(contains(errors[0], "collective 0 (all_reduce of 'mlp')"));
  EXPECT_TRUE(contains(errors[1], "collective 1 (all_reduce of 'attention')"));
}

TEST(LocalCommunicator, RankWithoutGroup) {
  Collective c = makeNamed("mlp", 2);
  c.groups = {{0}};
  std::vector<std::string> errors =
      runRanks(makeManifest(2, {c}), {}, [&](Communicator &communicator) {
        std::byte data[16] = {};
        communicator.run(0, data, data);
      });
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1],
            "rank 1 is in no group of collective 0 (all_reduce of 'mlp')");
}
