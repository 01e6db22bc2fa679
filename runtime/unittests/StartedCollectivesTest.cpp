//===- StartedCollectivesTest.cpp - Collectives beside computation --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of `local`, on the host. CollectiveTest.cpp has what each collective gives.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TestUtils.h"

#include <atomic>
#include <map>
#include <random>
#include <thread>

using namespace tprt;
using namespace tprt::test;
using std::chrono::milliseconds;

static Collective makeCollective(CollectiveKind kind,
                                 std::vector<std::vector<int64_t>> groups,
                                 int64_t elements,
                                 const std::string &fqn = "mlp") {
  int64_t n = groups.front().size(), worldSize = n * groups.size();
  Collective c{.kind = kind, .dtype = Dtype::F32};
  c.operandShapes = c.resultShapes =
      std::vector<Shape>(worldSize, Shape{elements});
  if (kind == CollectiveKind::AllGather)
    c.resultShapes.assign(worldSize, {n * elements});
  if (kind == CollectiveKind::ReduceScatter)
    c.operandShapes.assign(worldSize, {n * elements});
  c.groups = std::move(groups);
  c.fqn = fqn;
  c.isStarted = true;
  return c;
}

static Collective makeNamed(const std::string &fqn, int64_t worldSize) {
  return makeCollective(CollectiveKind::AllReduce, {firstRanks(worldSize)}, 4,
                        fqn);
}

static Manifest makeManifest(std::vector<Collective> collectives) {
  Manifest manifest;
  manifest.worldSize = collectives.front().operandShapes.size();
  manifest.collectives = std::move(collectives);
  return manifest;
}

/// Runs `body(communicator)` on a thread per rank, where an error ends the
/// program for all; returns what each threw.
template <typename Body>
static std::vector<std::string> runProgram(const Manifest &manifest, Body body,
                                           milliseconds timeout = {}) {
  CommunicatorOptions options;
  if (timeout.count() > 0)
    options.timeout = timeout;
  return runRanks(manifest, options, [&](Communicator &communicator) {
    try {
      body(communicator);
    } catch (const Error &error) {
      communicator.abort(error.what());
      throw;
    }
  });
}

static std::byte *toBytes(std::vector<float> &data) {
  return reinterpret_cast<std::byte *>(data.data());
}

namespace {

/// A collective of one rank, with data of its own.
class CheckedCall {
public:
  /// Operands are small integers that say which rank, and which call, they are
  /// of.
  CheckedCall(const Collective &c, int64_t id, int64_t rank, int64_t number)
      : c(c), id(id), rank(rank), number(number),
        operand(numElements(c.operandShapes[rank])),
        result(numElements(c.resultShapes[rank]), -1) {
    for (size_t i = 0; i < operand.size(); ++i)
      operand[i] = getElement(rank, i);
  }

  void start(Communicator &communicator) {
    communicator.start(id, toBytes(operand), toBytes(result));
  }
  void wait(Communicator &communicator) { check(communicator.wait(id)); }
  void run(Communicator &communicator) {
    check(communicator.run(id, toBytes(operand), toBytes(result)));
  }

private:
  float getElement(int64_t rank, int64_t i) const {
    return (number * 7 + rank * 3 + i) % 101;
  }

  float getExpected(const std::vector<int64_t> &group, int64_t position,
                    int64_t i) const {
    if (c.kind == CollectiveKind::AllGather) {
      int64_t size = operand.size();
      return getElement(group[i / size], i % size);
    }
    if (c.kind == CollectiveKind::ReduceScatter)
      i += position * result.size();
    float sum = 0;
    for (int64_t member : group)
      sum += getElement(member, i);
    return sum;
  }

  void check(int64_t bytes) {
    std::fill(operand.begin(), operand.end(), -1.0f); // free from now on
    EXPECT_EQ(bytes, getReceivedBytes(c, rank));
    const std::vector<int64_t> &group = *c.getGroup(rank);
    int64_t position =
        std::find(group.begin(), group.end(), rank) - group.begin();
    std::vector<float> expected(result.size());
    for (size_t i = 0; i < result.size(); ++i)
      expected[i] = getExpected(group, position, i);
    ASSERT_EQ(result, expected) << describe(c) << " call " << number;
  }

  const Collective &c;
  int64_t id, rank, number;
  std::vector<float> operand, result;
};

} // namespace

/// Spends some time, as computation would: none, little, or more than others.
static void skew(std::mt19937 &random) {
  switch (random() % 8) {
  case 0:
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
    break;
  case 1:
    std::this_thread::yield();
    break;
  case 2:
    for (volatile unsigned i = random() % 2000; i > 0; i = i - 1)
      ;
  }
}

/// A random program of collectives over several groups. All ranks issue the
/// same ones in one order; whether a rank starts each or runs it where it
/// stands, and when it waits for it, is its own choice.
static void runRandomProgram(int64_t worldSize, unsigned seed, int numSteps) {
  std::vector<std::vector<int64_t>> all(1), halves(2), columns(worldSize / 2);
  for (int64_t rank = 0; rank < worldSize; ++rank) {
    all[0].push_back(rank);
    halves[rank % 2].push_back(rank);
    if (worldSize % 2 == 0)
      columns[rank / 2].push_back(rank);
  }
  std::vector<std::vector<std::vector<int64_t>>> groupings = {all};
  if (worldSize % 2 == 0)
    groupings.insert(groupings.end(), {halves, columns});
  std::vector<Collective> collectives;
  for (const auto &groups : groupings)
    for (CollectiveKind kind :
         {CollectiveKind::AllReduce, CollectiveKind::AllGather,
          CollectiveKind::ReduceScatter})
      for (int64_t elements : {1, 700}) {
        collectives.push_back(makeCollective(kind, groups, elements));
        // Some are run where they stand by all.
        collectives.back().isStarted = collectives.size() % 4 != 0;
      }
  Manifest manifest = makeManifest(collectives);
  std::vector<std::string> errors =
      runProgram(manifest, [&](Communicator &communicator) {
        int64_t rank = communicator.getRank();
        std::mt19937 program(seed), own(seed * 1000 + rank);
        std::map<int64_t, CheckedCall> underWay;
        auto waitForOne = [&](auto which) {
          which->second.wait(communicator);
          underWay.erase(which);
        };
        for (int step = 0; step < numSteps; ++step) {
          int64_t id = program() % collectives.size();
          skew(own);
          while (!underWay.empty() && own() % 3 == 0)
            waitForOne(std::next(underWay.begin(), own() % underWay.size()));
          if (auto same = underWay.find(id); same != underWay.end())
            waitForOne(same);
          CheckedCall call(collectives[id], id, rank, step);
          if (!collectives[id].isStarted || own() % 4 == 0) {
            call.run(communicator);
            continue;
          }
          underWay.emplace(id, std::move(call))
              .first->second.start(communicator);
        }
        while (!underWay.empty())
          waitForOne(std::next(underWay.begin(), own() % underWay.size()));
      });
  EXPECT_EQ(errors, std::vector<std::string>(worldSize)) << "seed " << seed;
}

TEST(StartedCollectives, RandomPrograms) {
  for (int64_t worldSize : {1, 2, 3, 4, 6})
    for (unsigned seed = 0; seed < 12; ++seed)
      runRandomProgram(worldSize, seed, 150);
}

/// Who waits doesn't wait for who computes: rank 1 goes on only when rank 0 has
/// the result, and may overwrite its operand.
TEST(StartedCollectives, WaitForNobodyWhoComputes) {
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::AllGather,
        CollectiveKind::ReduceScatter, CollectiveKind::Broadcast}) {
    Collective c = makeCollective(kind, {{0, 1}}, 1000);
    std::atomic<bool> isDone{false};
    std::vector<std::string> errors =
        runProgram(makeManifest({c}), [&](Communicator &communicator) {
          std::vector<float> operand(2000, 3), result(2000, -1);
          communicator.start(0, toBytes(operand), toBytes(result));
          if (communicator.getRank() == 0) {
            communicator.wait(0);
            operand.assign(2000, 77);
            isDone = true;
          } else {
            while (!isDone)
              std::this_thread::yield();
            communicator.wait(0);
          }
          EXPECT_EQ(result[500], c.isReduction() ? 6 : 3);
        });
    EXPECT_EQ(errors, std::vector<std::string>(2));
  }
}

/// The order in which ranks wait is theirs.
TEST(StartedCollectives, AnyOrderOfWaits) {
  Manifest manifest = makeManifest({makeNamed("a", 2), makeNamed("b", 2)});
  manifest.collectives.push_back(makeNamed("c", 2));
  manifest.collectives.back().isStarted = false;
  std::vector<std::string> errors =
      runProgram(manifest, [&](Communicator &communicator) {
        bool isFirst = communicator.getRank() == 0;
        std::vector<float> a(4, 1), b(4, 2), c(4, 3);
        for (int round = 0; round < 100; ++round) {
          communicator.start(0, toBytes(a), toBytes(a));
          communicator.start(1, toBytes(b), toBytes(b));
          communicator.wait(isFirst ? 0 : 1);
          if (isFirst)
            communicator.wait(1);
          communicator.run(2, toBytes(c), toBytes(c));
          if (!isFirst)
            communicator.wait(0);
          ASSERT_EQ(std::exchange(a[3], 1), 2);
          ASSERT_EQ(std::exchange(b[3], 2), 4);
          ASSERT_EQ(std::exchange(c[3], 3), 6);
        }
      });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Sums don't depend on who adds.
/// One that others may start, run where its result replaces its operand while
/// somebody else has yet to read that.
TEST(StartedCollectives, InPlaceWhereOthersStillRead) {
  constexpr int64_t n = 3, size = 100'000, numRounds = 100;
  Collective c = makeCollective(CollectiveKind::Permute, {{0, 1, 2}}, size);
  c.source = {1, 2, 0};
  Manifest manifest = makeManifest({c});
  std::vector<std::string> errors =
      runProgram(manifest, [&](Communicator &self) {
        int64_t rank = self.getRank();
        std::mt19937 random(rank);
        std::vector<float> data(size, rank);
        for (int64_t round = 1; round <= numRounds; ++round) {
          skew(random);
          self.run(0, toBytes(data), toBytes(data));
          ASSERT_EQ(data, std::vector<float>(size, (rank + round) % n));
        }
      });
  EXPECT_EQ(errors, std::vector<std::string>(n));
}

TEST(StartedCollectives, SumsInGroupOrder) {
  Collective c = makeCollective(CollectiveKind::AllReduce, {{2, 0, 1}}, 3000);
  auto element = [](int64_t rank, int64_t i) {
    return std::ldexp(1.0f + static_cast<float>(i) / 3000, rank * 20 - 10) *
           (rank == 1 ? -1.0f : 1.0f);
  };
  for (int64_t late = 0; late < 3; ++late)
    runProgram(makeManifest({c}), [&](Communicator &communicator) {
      std::vector<float> data(3000);
      for (int64_t i = 0; i < 3000; ++i)
        data[i] = element(communicator.getRank(), i);
      communicator.start(0, toBytes(data), toBytes(data));
      if (communicator.getRank() == late)
        std::this_thread::sleep_for(milliseconds(20));
      communicator.wait(0);
      for (int64_t i = 0; i < 3000; ++i)
        ASSERT_EQ(data[i], (element(2, i) + element(0, i)) + element(1, i));
    });
}

TEST(StartedCollectives, DifferentOnesAreNoticed) {
  Manifest manifest =
      makeManifest({makeNamed("mlp", 2), makeNamed("attention", 2)});
  std::vector<std::string> errors =
      runProgram(manifest, [&](Communicator &communicator) {
        std::vector<float> data(4);
        communicator.start(communicator.getRank(), toBytes(data),
                           toBytes(data));
        communicator.wait(communicator.getRank());
      });
  EXPECT_TRUE(contains(errors[0], "the ranks' programs don't match: rank "));
  EXPECT_TRUE(contains(errors[0], "collective 0 (all_reduce of 'mlp')"));
  EXPECT_TRUE(contains(errors[1], "collective 1 (all_reduce of 'attention')"));
}

/// One that is started meets one that is run.
TEST(StartedCollectives, DifferentFromWhatOthersRun) {
  Manifest manifest =
      makeManifest({makeNamed("mlp", 2), makeNamed("attention", 2)});
  manifest.collectives[1].isStarted = false;
  for (int64_t runner : {0, 1}) {
    std::vector<std::string> errors =
        runProgram(manifest, [&](Communicator &communicator) {
          std::vector<float> data(4);
          if (communicator.getRank() == runner) {
            communicator.run(1, toBytes(data), toBytes(data));
            return;
          }
          communicator.start(0, toBytes(data), toBytes(data));
          communicator.wait(0);
        });
    EXPECT_TRUE(contains(errors[0], "the ranks' programs don't match: rank "));
    EXPECT_TRUE(contains(errors[1], "collective 0 (all_reduce of 'mlp')"));
  }
}

/// Both have started both, so that nobody would wait forever: an error all the
/// same, and always.
TEST(StartedCollectives, AnotherOrderIsNoticed) {
  Manifest manifest =
      makeManifest({makeNamed("mlp", 2), makeNamed("attention", 2)});
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::string> errors =
        runProgram(manifest, [&](Communicator &communicator) {
          std::vector<float> data(4), more(4);
          int64_t first = communicator.getRank();
          communicator.start(first, toBytes(data), toBytes(data));
          communicator.start(1 - first, toBytes(more), toBytes(more));
          communicator.wait(first);
        });
    EXPECT_TRUE(contains(errors[0], "the ranks' programs don't match: rank "));
    EXPECT_TRUE(contains(errors[1], "the ranks' programs don't match: rank "));
  }
}

TEST(StartedCollectives, AbortReleasesTheOthers) {
  std::vector<std::string> errors = runProgram(
      makeManifest({makeNamed("mlp", 3)}), [&](Communicator &communicator) {
        std::vector<float> data(4);
        if (communicator.getRank() == 1) {
          std::this_thread::sleep_for(milliseconds(20));
          communicator.abort("rank 1 failed: out of luck");
          return;
        }
        communicator.start(0, toBytes(data), toBytes(data));
        communicator.wait(0);
      });
  EXPECT_EQ(errors[0], "rank 1 failed: out of luck");
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[2], "rank 1 failed: out of luck");
}

TEST(StartedCollectives, TimeoutNamesWhoWaitsWhere) {
  std::vector<std::string> errors = runProgram(
      makeManifest({makeNamed("mlp", 2)}),
      [&](Communicator &communicator) {
        std::vector<float> data(4);
        if (communicator.getRank() == 1)
          std::this_thread::sleep_for(milliseconds(4000));
        communicator.start(0, toBytes(data), toBytes(data));
        communicator.wait(0);
      },
      milliseconds(1000));
  for (const std::string &error : errors)
    EXPECT_EQ(error, "no progress for 1 s: rank 0 waits in collective 0 "
                     "(all_reduce of 'mlp'); rank 1 computes");
}

TEST(StartedCollectives, EndedRankIsNamedAtOnce) {
  std::vector<std::string> errors = runProgram(
      makeManifest({makeNamed("mlp", 2)}), [&](Communicator &communicator) {
        std::vector<float> data(4);
        if (communicator.getRank() == 1)
          return;
        communicator.start(0, toBytes(data), toBytes(data));
        communicator.wait(0);
      });
  EXPECT_EQ(errors[0], "rank 1 has ended while others wait for it: rank 0 "
                       "waits in collective 0 (all_reduce of 'mlp'); rank 1 "
                       "has ended");
}

namespace {

/// A backend whose collectives can't go on by themselves: at least right.
class Echo final : public Communicator {
public:
  int64_t getRank() const override { return 0; }
  int64_t run(int64_t id, const std::byte *src, std::byte *dst) override {
    *dst = *src;
    return 8 + id;
  }
  void barrier() override {}
  void abort(const std::string &) override {}
  void finish() override {}
};

} // namespace

TEST(StartedCollectives, BackendThatOnlyRunsThem) {
  Echo echo;
  std::byte src[2] = {std::byte(1), std::byte(2)}, dst[2] = {};
  echo.start(0, &src[0], &dst[0]);
  echo.start(1, &src[1], &dst[1]);
  EXPECT_EQ(echo.wait(1), 9);
  EXPECT_EQ(echo.wait(0), 8);
  EXPECT_EQ(dst[0], src[0]);
  EXPECT_EQ(dst[1], src[1]);
}
