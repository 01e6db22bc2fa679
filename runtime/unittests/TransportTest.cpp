//===- TransportTest.cpp - Ranks that exchange bytes ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CollectiveTest.cpp has the collectives.
//
//===----------------------------------------------------------------------===//

#include "Jobs.h"
#include "Ranks.h"
#include "TestUtils.h"
#include "ThreadTransport.h"
#include "TrainPrograms.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

using namespace tprt;
using namespace tprt::test;

using Body = std::function<void(Communicator &)>;

static std::vector<std::string> runOn(const Manifest &manifest, Body body) {
  return runRanks(manifest, {}, std::move(body), &getTransportBackend());
}

static Manifest makeSum(int64_t worldSize,
                        std::vector<std::vector<int64_t>> groups) {
  Collective c{.kind = CollectiveKind::AllReduce, .dtype = Dtype::F32};
  c.operandShapes = c.resultShapes = std::vector<Shape>(worldSize, Shape{3000});
  c.groups = std::move(groups);
  c.fqn = "down";
  return makeManifest(worldSize, {c});
}

/// Sums have the bits of the `local` backend, also where the group isn't in the
/// order of the ranks.
TEST(Transport, SumsLikeLocal) {
  for (const std::vector<int64_t> &group :
       {std::vector<int64_t>{1, 0}, {2, 0, 1}, {3, 1, 0, 2}}) {
    int64_t n = group.size();
    Manifest manifest = makeSum(n, {group});
    auto sum = [&](const Backend *backend) {
      std::vector<std::vector<float>> sums(n, std::vector<float>(3000));
      runRanks(
          manifest, {},
          [&](Communicator &communicator) {
            int64_t rank = communicator.getRank();
            std::vector<float> operand(3000);
            for (int64_t i = 0; i < 3000; ++i)
              operand[i] = std::ldexp(1.0f + static_cast<float>(i) / 3000,
                                      rank * 20 - 10) *
                           (rank == 1 ? -1.0f : 1.0f);
            communicator.run(
                0, reinterpret_cast<const std::byte *>(operand.data()),
                reinterpret_cast<std::byte *>(sums[rank].data()));
          },
          backend);
      return sums;
    };
    EXPECT_EQ(sum(&getTransportBackend()), sum(findBackend("local")));
  }
}

TEST(Transport, RefusesRanksOutsideOfTheGroups) {
  std::vector<std::string> errors =
      runOn(makeSum(3, {{0, 1}}), [](Communicator &communicator) {
        std::vector<std::byte> data(12000);
        communicator.run(0, data.data(), data.data());
      });
  EXPECT_EQ(errors, (std::vector<std::string>{
                        "", "",
                        "rank 2 is in no group of collective 0 (all_reduce of "
                        "'down')"}));
}

TEST(Transport, AbortsTheOthersNowAndLater) {
  std::vector<std::string> errors =
      runOn(makeSum(3, {{0, 1, 2}}), [](Communicator &communicator) {
        if (communicator.getRank() == 1)
          communicator.abort("rank 1 failed: out of memory");
        std::vector<std::byte> data(12000);
        auto run = [&] { communicator.run(0, data.data(), data.data()); };
        EXPECT_EQ(errorOf(run), "rank 1 failed: out of memory");
        EXPECT_EQ(errorOf([&] { communicator.barrier(); }),
                  "rank 1 failed: out of memory");
      });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(Transport, ExchangesContributionsOfAnySize) {
  runOn(makeManifest(3, {}), [](Communicator &communicator) {
    std::string mine(2 * communicator.getRank(), 'x');
    EXPECT_EQ(communicator.exchange(mine, 4),
              (std::vector<std::string>{"", "xx", "xxxx"}));
    EXPECT_EQ(errorOf([&] { communicator.exchange(mine, 3); }),
              "rank 2 gives 4 bytes where at most 3 are expected: it runs "
              "another program");
  });
}

TEST(Transport, FindsRanksThatRunSomethingElse) {
  std::vector<std::string> errors =
      runOn(makeManifest(2, {}), [](Communicator &communicator) {
        if (communicator.getRank() == 0)
          communicator.barrier();
        else
          communicator.exchange("", 0);
      });
  EXPECT_EQ(errors[0], "the ranks' programs don't match: rank 0 and rank 1 "
                       "make different calls");
  EXPECT_EQ(errors[1], "the ranks' programs don't match: rank 1 and rank 0 "
                       "make different calls");
}

TEST(Transport, AgreesOnSeveralValues) {
  runOn(makeManifest(2, {}), [](Communicator &communicator) {
    std::string rank = std::to_string(communicator.getRank());
    communicator.agreeOnAll({{"the program", "a"}, {"the input 'x'", "b"}});
    EXPECT_EQ(errorOf([&] {
                communicator.agreeOnAll(
                    {{"the program", "a"}, {"the input 'x'", rank}});
              }),
              "the ranks don't agree on the input 'x': it is '0' on rank 0, "
              "'1' on rank 1");
  });
}

/// The error of `work`, which the other ranks get as well; empty if there is
/// none.
static std::string abortOnError(Communicator &communicator,
                                const std::function<void()> &work) {
  try {
    work();
  } catch (const AbortedError &error) {
    return error.what();
  } catch (const Error &error) {
    communicator.abort(error.what());
    return error.what();
  }
  return "";
}

/// Several kinds of collectives over 3 ranks.
static Manifest makeAllKinds() {
  std::vector<Collective> all;
  auto add = [&](CollectiveKind kind, const Shape &operand,
                 const Shape &result) -> Collective & {
    Collective &c = all.emplace_back();
    c.kind = kind;
    c.dtype = Dtype::F32;
    c.operandShapes.assign(3, operand);
    c.resultShapes.assign(3, result);
    c.groups = {{0, 1, 2}};
    c.fqn = "layers." + std::to_string(all.size() - 1);
    return c;
  };
  add(CollectiveKind::AllReduce, {30}, {30});
  add(CollectiveKind::AllGather, {2, 5}, {6, 5});
  add(CollectiveKind::ReduceScatter, {6, 5}, {2, 5});
  add(CollectiveKind::AllToAll, {6, 5}, {2, 15}).concatDim = 1;
  Collective &rows = add(CollectiveKind::Exchange, {6, 5}, {6, 5});
  rows.hasSparseRows = true;
  for (int64_t rank = 0; rank < 3; ++rank) {
    std::vector<Transfer> &transfers = rows.transfers.emplace_back();
    for (int64_t from = 0; from < 3; ++from)
      transfers.push_back({from, {2 * rank, 0}, {2 * from, 0}, {2, 5}});
  }
  return makeManifest(3, std::move(all));
}

/// A bit that changes on its way, in whatever message of whatever collective, is
/// noticed by the rank that receives it, and ends all ranks.
TEST(Transport, NoticesChangedMessages) {
  Manifest manifest = makeAllKinds();
  // Without checksums. Those of rank 0's rows, which are zeros, are left out.
  const int64_t counts[] = {12, 6, 6, 6, 10};
  for (bool hasChecksums : {false, true})
    for (int64_t id = 0; id < 5; ++id) {
      int64_t numMessages = 0;
      // At first, counts them.
      for (int64_t changed = -1; changed < numMessages; ++changed) {
        int64_t number = 0, sender = -1, receiver = -1;
        auto transports = makeThreadTransports(
            3, [&](int64_t from, int64_t to, std::vector<std::byte> &message) {
              if (message.empty() || number++ != changed)
                return;
              sender = from;
              receiver = to;
              message[message.size() / 2] ^= std::byte(4);
            });
        std::vector<std::string> errors(3);
        runThreads(3, [&](int64_t rank) {
          CommunicatorOptions options;
          options.checksum = hasChecksums;
          auto communicator = std::move(
              makeFactory(transports[rank])(manifest, options).front());
          std::vector<float> data(30, static_cast<float>(rank)), result(30);
          errors[rank] = abortOnError(*communicator, [&] {
            communicator->run(id, reinterpret_cast<std::byte *>(data.data()),
                              reinterpret_cast<std::byte *>(result.data()));
          });
        });
        if (changed < 0) {
          EXPECT_EQ(errors, std::vector<std::string>(3));
          EXPECT_EQ(number, (hasChecksums ? 2 : 1) * counts[id]);
          numMessages = hasChecksums ? number : 0;
          continue;
        }
        std::string rank = std::to_string(receiver);
        EXPECT_TRUE(contains(errors[receiver], "rank " + rank + " on host '"))
            << errors[receiver];
        EXPECT_TRUE(contains(errors[receiver],
                             " in " + describeCollective(manifest, id) +
                                 ", but rank " + std::to_string(sender) +
                                 " on host '"))
            << errors[receiver];
        for (const std::string &error : errors)
          EXPECT_TRUE(error.empty() || error == errors[receiver]) << error;
      }
    }
}

/// Values that ranks exchange between runs are checked as well.
TEST(Transport, NoticesChangedContributions) {
  for (int64_t changed = 0; changed < 8; ++changed) {
    int64_t number = 0;
    auto transports = makeThreadTransports(
        2, [&](int64_t, int64_t, std::vector<std::byte> &message) {
          if (number++ == changed)
            message[0] ^= std::byte(4);
        });
    std::atomic<int> numNoticed = 0;
    runThreads(2, [&](int64_t rank) {
      CommunicatorOptions options;
      options.checksum = true;
      Manifest manifest = makeManifest(2, {});
      auto communicator =
          std::move(makeFactory(transports[rank])(manifest, options).front());
      std::string error = abortOnError(
          *communicator, [&] { communicator->exchange("mine", 4); });
      numNoticed +=
          contains(error, " in an exchange of all ranks between runs");
    });
    EXPECT_GE(numNoticed, 1) << changed;
  }
}

/// Calls `body` with each rank of `numRanks`, in a thread of its own, and with
/// the options of a session that runs only this rank.
static void
forEachRank(int64_t numRanks,
            const std::function<void(int64_t, SessionOptions)> &body) {
  auto transports = makeThreadTransports(numRanks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < numRanks; ++rank)
    threads.emplace_back([&, rank] {
      SessionOptions options;
      options.makeCommunicators = makeFactory(transports[rank]);
      options.ranks = {rank};
      body(rank, options);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Sessions that run one rank each compute what one session of all ranks does.
TEST(Transport, RunsSessionsOfOneRank) {
  Session whole(loadTrainProgram("train.3"), makeRegressionWeights());
  TensorMap batch = makeRegressionData(8);
  RunResult expected = whole.run(batch, {.repeat = 3});
  forEachRank(3, [&](int64_t rank, SessionOptions options) {
    options.backend = "transport";
    Session session(loadTrainProgram("train.3"), makeRegressionWeights(),
                    options);
    RunOptions run{.repeat = 3, .gathersOutputs = true};
    run.agreement = {{"the inputs", "x"}};
    RunResult result = session.run(batch, run);
    EXPECT_EQ(getElements<float>(result.outputs.at("loss")),
              getElements<float>(expected.outputs.at("loss")));
    EXPECT_EQ(result.counts[rank], expected.counts[rank]);
    EXPECT_EQ(errorOf([&] { session.getParameter("w"); }),
              "the ranks of this process hold only a part of parameter 'w'");
    for (const char *name : {"w", "b"})
      EXPECT_EQ(getElements<float>(session.gatherParameter(name)),
                getElements<float>(whole.getParameter(name)));
    run.agreement = {{"the inputs", rank == 2 ? "y" : "x"}};
    EXPECT_NE(errorOf([&] { session.run(batch, run); })
                  .find("the ranks don't agree on the inputs: it is 'x' on "
                        "rank 0, 'y' on rank 2"),
              std::string::npos);
  });
}

/// A session of one rank takes the blocks of that rank, and returns them.
TEST(Transport, TakesBlocksOfItsRank) {
  std::shared_ptr<const Artifact> artifact = loadTrainProgram("train.3");
  Session whole(artifact, makeRegressionWeights());
  auto getBlocks = [&](int64_t rank) {
    TensorMap blocks;
    for (const TensorInfo &info : artifact->getManifest().parameters)
      blocks[info.name] = whole.getParameterBlock(info.name, rank);
    return blocks;
  };
  EXPECT_EQ(
      errorOf([&] { Session(artifact, {}, {}, getBlocks(0)); }),
      "there is a block of 'w', and this process runs 3 ranks; blocks are "
      "for a process that runs one");
  std::vector<TensorMap> blocks;
  for (int64_t rank = 0; rank < 3; ++rank)
    blocks.push_back(getBlocks(rank));
  TensorMap batch = makeRegressionData(8);
  RunResult expected = whole.run(batch, {.repeat = 3});
  forEachRank(3, [&](int64_t rank, SessionOptions options) {
    Session session(artifact, {}, options, blocks[rank]);
    RunOptions run{.repeat = 3, .gathersOutputs = true};
    for (int i = 0; i < 2; ++i) {
      RunResult result = session.run(batch, run);
      EXPECT_EQ(getElements<float>(result.outputs.at("loss")),
                getElements<float>(expected.outputs.at("loss")));
      // Once more, from the beginning.
      session.setParameters({}, blocks[rank]);
    }
    run.blockOutputs = {"loss"}; // each rank has all of it
    EXPECT_EQ(getElements<float>(session.run(batch, run).outputs.at("loss")),
              getElements<float>(expected.outputs.at("loss")));
    Tensor wrong = makeTensor<float>(Dtype::F32, {7}, std::vector<float>(7));
    EXPECT_NE(errorOf([&] {
                session.setParameters({}, {{"w", wrong}});
              }).find("block of parameter 'w' has type 7xf32, expected "),
              std::string::npos);
  });
}

TEST(Transport, NeedsAProcessForEachRank) {
  std::shared_ptr<Transport> transport = makeThreadTransports(2).front();
  EXPECT_EQ(errorOf([&] { makeFactory(transport)(makeManifest(4, {}), {}); }),
            "the program has 4 ranks, but there are 2 processes");
  Manifest forCuda = makeManifest(2, {});
  forCuda.isForCuda = true;
  EXPECT_EQ(errorOf([&] { makeFactory(transport)(forCuda, {}); }),
            "the program is for CUDA devices, and its ranks exchange data of "
            "the host's memory");
}
