//===- NcclTest.cpp - Sessions of one rank each ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/nccl/Nccl.h"
#include "Fake.h"
#include "Jobs.h"
#include "NcclProgram.h"
#include "tprt/Session.h"

#include <barrier>
#include <map>
#include <set>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;
using std::chrono::seconds;

// The fake's own, whose checks the tests below rely on.
#define TPRT_DECLARE(name, result, parameters)                                 \
  extern "C" result name parameters;
namespace tprt::cuda {
TPRT_NCCL_FUNCTIONS(TPRT_DECLARE)
TPRT_NCCL_MEMORY_FUNCTIONS(TPRT_DECLARE)
TPRT_NCCL_WINDOW_FUNCTIONS(TPRT_DECLARE)
} // namespace tprt::cuda

static CommunicatorFactory makeNccl(Connection &connection) {
  return makeFactory(*findBackend("nccl"), &connection);
}

/// What the ranks say when they make communicators for a collective.
static std::string getErrors(const Collective &c) {
  int64_t size = c.groups.front().size();
  Manifest manifest;
  manifest.worldSize = size;
  manifest.collectives = {c};
  std::vector<Job> jobs = makeJobs(size);
  std::vector<std::string> errors(size);
  runThreads(size, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(60));
    CommunicatorOptions options;
    options.device = getDevice(rank);
    errors[rank] = errorOf([&] { makeNccl(connection)(manifest, options); });
  });
  std::string all;
  for (const std::string &error : errors)
    all += error + "\n";
  return all;
}

/// One stage can't send to two others at once.
TEST(NcclTransfers, OfSeveralPairsAreRefused) {
  Collective c{.kind = CollectiveKind::Transfer, .dtype = Dtype::F32};
  c.fqn = "layers.3";
  c.groups = {{0, 1, 2}};
  c.operandShapes = {{2}, {0}, {0}};
  c.resultShapes = {{0}, {2}, {2}};
  c.transfers = {{}, {{0, {0}, {0}, {2}}}, {{0, {0}, {0}, {2}}}};
  std::string errors = getErrors(c);
  EXPECT_TRUE(contains(errors, "transfer of 'layers.3'")) << errors;
  EXPECT_TRUE(contains(errors, "rank 0 is in several pairs of sender and "
                               "receiver; with NCCL, a rank may be in one "
                               "pair of each transfer"))
      << errors;
}

/// Every rank says which collective it is, before anything runs.
TEST(NcclReductions, WithoutTypeAreRefused) {
  auto getErrors = [](Reduction reduction, Dtype dtype) {
    Collective c{.kind = CollectiveKind::AllReduce, .dtype = dtype};
    c.reduction = reduction;
    c.fqn = "mlp.down";
    c.operandShapes = c.resultShapes = std::vector<Shape>(2, Shape{4});
    c.groups = {{0, 1}};
    return ::getErrors(c);
  };
  std::string errors = getErrors(Reduction::Sum, Dtype::I16);
  EXPECT_TRUE(contains(errors, "mlp.down")) << errors;
  EXPECT_TRUE(contains(errors, "NCCL doesn't reduce i16 by sum: convert the "
                               "operand to i32"))
      << errors;
  errors = getErrors(Reduction::Avg, Dtype::I8);
  EXPECT_TRUE(contains(errors, "NCCL doesn't reduce i8 by avg")) << errors;
}

TEST(FakeNccl, NoticesWhatIsRegisteredForTooLong) {
  using namespace tprt::cuda;
  ncclUniqueId id = {};
  ncclComm_t comm = nullptr;
  void *memory = nullptr, *handle = nullptr;
  ncclWindow_t window = nullptr;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ASSERT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
  ASSERT_EQ(ncclMemAlloc(&memory, 64), ncclSuccess);
  int64_t elsewhere = 0;
  EXPECT_NE(ncclCommRegister(comm, &elsewhere, 8, &handle), ncclSuccess);
  ASSERT_EQ(ncclCommRegister(comm, memory, 64, &handle), ncclSuccess);
  EXPECT_NE(ncclMemFree(memory), ncclSuccess);
  EXPECT_NE(ncclCommDestroy(comm), ncclSuccess);
  ASSERT_EQ(ncclCommDeregister(comm, handle), ncclSuccess);
  ASSERT_EQ(ncclCommWindowRegister(comm, memory, 64, &window,
                                   NCCL_WIN_COLL_SYMMETRIC),
            ncclSuccess);
  EXPECT_NE(ncclMemFree(memory), ncclSuccess);
  EXPECT_NE(ncclCommDestroy(comm), ncclSuccess);
  ASSERT_EQ(ncclCommWindowDeregister(comm, window), ncclSuccess);
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  fake::reset();
}

TEST(FakeNccl, NoticesWindowsOfSeveralSizes) {
  using namespace tprt::cuda;
  ncclUniqueId id = {};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  runThreads(2, [&](int64_t rank) {
    ncclComm_t comm = nullptr;
    void *memory = nullptr;
    ncclWindow_t window = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    ASSERT_EQ(ncclMemAlloc(&memory, 64), ncclSuccess);
    EXPECT_NE(ncclCommWindowRegister(comm, memory, 64 - rank, &window,
                                     NCCL_WIN_COLL_SYMMETRIC),
              ncclSuccess);
    EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  });
  fake::reset();
}

static std::shared_ptr<const Artifact>
loadProgram(const std::string &entry = "tpx_main") {
  TestDirectory directory;
  return Artifact::load(directory.write("toy.tpx", makeProgram(entry)));
}

namespace {

class NcclSession : public testing::Test {
protected:
  void SetUp() override { fake::reset(); }
  void TearDown() override { fake::reset(); }

  /// Calls body(session, rank) for sessions of one rank each; what they throw.
  template <typename Body>
  std::vector<std::string> run(const std::string &entry, Body body,
                               seconds timeout = seconds(20)) {
    std::vector<Job> jobs = makeJobs(2);
    std::vector<std::string> errors(2);
    runThreads(2, [&](int64_t rank) {
      try {
        Connection connection(jobs[rank], seconds(60));
        SessionOptions options;
        options.ranks = {rank};
        options.cuda.device = rank;
        options.communicator.timeout = timeout;
        options.makeCommunicators = makeNccl(connection);
        Session session(loadProgram(entry), getWeights(), options);
        body(session, rank);
      } catch (const Error &error) {
        errors[rank] = error.what();
      }
    });
    return errors;
  }
};

} // namespace

TEST_F(NcclSession, RunsEachRankInAProcess) {
  std::vector<std::string> errors =
      run("tpx_main", [](Session &session, int64_t rank) {
        for (int repeat = 0; repeat < 4; ++repeat) {
          RunResult result = session.run(getInputs());
          EXPECT_EQ(getElements<float>(result.outputs.at("y")),
                    (std::vector<float>{30, 52, 74, 46, 68, 90}));
          EXPECT_EQ(result.counts[rank][0], (CollectiveCount{1, 24}));
        }
        // What the other rank has isn't here.
        EXPECT_TRUE(contains(errorOf([&] { session.getParameter("w"); }),
                             "hold only a part of parameter 'w'"));
      });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(fake::countCalls("ncclCommInitRank"), 2u);
  EXPECT_EQ(fake::countCalls("ncclCommSplit"), 0u); // the group is the world
  // Each of both: enqueued twice, before and after its memory is registered,
  // and captured once.
  EXPECT_EQ(fake::countCalls("ncclAllReduce 6 world"), 6u);
  EXPECT_EQ(fake::countCalls("cuStreamBeginCapture"), 2u);
  EXPECT_EQ(fake::countCalls("cuGraphLaunch"), 4u);
  EXPECT_EQ(fake::countCalls("ncclCommDestroy"), 2u);
}

/// Inputs that choose different programs are an error, and not a wait.
TEST_F(NcclSession, RanksAgreeOnTheProgram) {
  auto runRows = [&](Session &session, int64_t count) {
    std::vector<float> ones(count * 4, 1);
    RunResult result =
        session.run({{"x", makeTensor<float>(Dtype::F32, {count, 4}, ones)}});
    EXPECT_EQ(getElements<float>(result.outputs.at("y"))[0], 24);
    EXPECT_TRUE(contains(session.getCommunication(), "several programs"));
  };
  for (const std::string &error :
       run("buckets", [&](Session &session, int64_t rank) {
         for (int64_t count : {2, 4, 4, 2, 2, 4})
           runRows(session, count);
         runRows(session, rank == 0 ? 2 : 4);
       }))
    EXPECT_TRUE(contains(error, "the ranks don't agree on the program: it is "
                                "'short' on rank 0, 'long' on rank 1"));
}

/// Enqueued and captured, on a stream of its own.
TEST_F(NcclSession, StartsCollectivesBesideKernels) {
  std::vector<std::string> errors =
      run("started", [](Session &session, int64_t rank) {
        for (int repeat = 0; repeat < 4; ++repeat) {
          RunResult result = session.run(getInputs());
          EXPECT_EQ(getElements<float>(result.outputs.at("y")),
                    (std::vector<float>{30, 52, 74, 46, 68, 90}));
          for (int64_t id = 0; id < 2; ++id)
            EXPECT_EQ(result.counts[rank][id], (CollectiveCount{1, 24}));
        }
      });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  std::set<std::string> reducing, computing;
  for (const std::string &call : fake::getCalls()) {
    std::string stream =
        call.substr(std::min(call.rfind("stream"), call.size()));
    if (call.starts_with("ncclAllReduce"))
      reducing.insert(stream);
    if (call.starts_with("cuLaunchKernel"))
      computing.insert(stream);
  }
  EXPECT_EQ(reducing.size(), 2u);
  EXPECT_EQ(computing.size(), 2u);
  for (const std::string &stream : reducing)
    EXPECT_FALSE(computing.contains(stream)) << stream;
}

TEST_F(NcclSession, ConnectsBeforeTheFirstRun) {
  std::vector<std::string> errors =
      run("tpx_main", [](Session &session, int64_t) {
        session.run(getInputs());
        std::vector<std::string> calls = fake::getCalls();
        auto find = [&](const std::string &prefix) {
          return std::find_if(calls.begin(), calls.end(),
                              [&](const std::string &call) {
                                return call.starts_with(prefix);
                              });
        };
        EXPECT_LT(find("ncclAllReduce 1 world"), find("ncclAllReduce 6 world"));
      });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(fake::countCalls("ncclAllReduce 1 world"), 2u);
}

TEST_F(NcclSession, RegistersTheArena) {
  size_t before = fake::getAllocatedBytes();
  std::vector<std::string> errors =
      run("tpx_main", [](Session &session, int64_t) {
        EXPECT_EQ(session.getCommunication(), "");
        session.run(getInputs());
        EXPECT_EQ(session.getCommunication(), "NCCL 2.28.9, window buffers");
      });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(fake::countCalls("ncclMemAlloc 64"), 2u);
  EXPECT_EQ(fake::countCalls("ncclCommWindowRegister 64 world"), 2u);
  EXPECT_EQ(fake::countCalls("ncclCommWindowDeregister world"), 2u);
  EXPECT_EQ(fake::countCalls("ncclMemFree"), 2u);
  EXPECT_EQ(fake::getAllocatedBytes(), before);
}

/// NCCL may register symmetric memory without a window, and say nothing.
TEST_F(NcclSession, RegistersBuffersWithoutWindows) {
  fake::getSettings().ncclHasWindows = false;
  size_t before = fake::getAllocatedBytes();
  std::vector<std::string> errors = run("tpx_main", [](Session &session,
                                                       int64_t) {
    for (int repeat = 0; repeat < 4; ++repeat)
      EXPECT_EQ(getElements<float>(session.run(getInputs()).outputs.at("y")),
                (std::vector<float>{30, 52, 74, 46, 68, 90}));
    EXPECT_EQ(session.getCommunication(), "NCCL 2.28.9, registered buffers");
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(fake::countCalls("ncclCommWindowRegister 64 world"), 2u);
  EXPECT_EQ(fake::countCalls("ncclCommRegister 64 world"), 2u);
  EXPECT_EQ(fake::countCalls("ncclCommWindowDeregister"), 0u);
  EXPECT_EQ(fake::countCalls("ncclCommDeregister world"), 2u);
  EXPECT_EQ(fake::getAllocatedBytes(), before);
}

/// Where a rank's program has its operands elsewhere, NCCL's symmetric
/// collectives would read the others' at this rank's offsets.
TEST_F(NcclSession, RegistersNothingWhereOffsetsDiffer) {
  std::vector<std::string> errors = run("shifted", [](Session &session,
                                                      int64_t) {
    for (int repeat = 0; repeat < 4; ++repeat)
      EXPECT_EQ(getElements<float>(session.run(getInputs()).outputs.at("y")),
                (std::vector<float>{15, 26, 37, 23, 34, 45}));
    EXPECT_EQ(session.getCommunication(),
              "NCCL 2.28.9, plain buffers (the ranks' offsets differ)");
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(fake::countCalls("ncclCommWindowRegister"), 0u);
  EXPECT_EQ(fake::countCalls("ncclMemFree"), 2u);
}

/// Where a rank has no memory to register, or all can't register theirs, none
/// does.
TEST_F(NcclSession, RunsWhereNothingCanBeRegistered) {
  for (auto [function, count] :
       {std::pair("ncclMemAlloc", 1), std::pair("ncclCommWindowRegister", 2)}) {
    fake::reset();
    for (int i = 0; i < count; ++i)
      fake::failCall(function, 5);
    std::vector<std::string> errors =
        run("tpx_main", [function = function](Session &session, int64_t) {
          for (int repeat = 0; repeat < 4; ++repeat)
            EXPECT_EQ(
                getElements<float>(session.run(getInputs()).outputs.at("y")),
                (std::vector<float>{30, 52, 74, 46, 68, 90}));
          std::string how = session.getCommunication();
          EXPECT_TRUE(contains(how, "NCCL 2.28.9, plain buffers (rank "));
          EXPECT_TRUE(contains(how, std::string(": ") + function));
        });
    EXPECT_EQ(errors, std::vector<std::string>(2));
    EXPECT_EQ(fake::countCalls("ncclCommWindowDeregister"), 0u);
  }
}

/// Each rank is a group of its own, so the world is split.
TEST_F(NcclSession, GivesUpASplitThatDoesNotReturn) {
  fake::getSettings().hangingCall = "ncclCommSplit";
  Collective c{.kind = CollectiveKind::AllReduce, .dtype = Dtype::F32};
  c.operandShapes = c.resultShapes = std::vector<Shape>(2, Shape{4});
  c.groups = {{0}, {1}};
  Manifest manifest;
  manifest.worldSize = 2;
  manifest.collectives = {c};
  std::vector<Job> jobs = makeJobs(2);
  runThreads(2, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(60));
    CommunicatorOptions options;
    options.device = getDevice(rank);
    options.timeout = seconds(1);
    EXPECT_TRUE(
        contains(errorOf([&] { makeNccl(connection)(manifest, options); }),
                 "ncclCommSplit hasn't returned for 1 s"));
  });
}

/// A call that never returns ends the job.
TEST_F(NcclSession, GivesUpCallsThatDoNotReturn) {
  for (const char *function : {"ncclCommInitRank", "ncclCommWindowRegister"}) {
    fake::reset();
    fake::getSettings().hangingCall = function;
    std::vector<std::string> errors = run(
        "tpx_main", [](Session &session, int64_t) { session.run(getInputs()); },
        seconds(1));
    for (const std::string &error : errors)
      EXPECT_TRUE(
          contains(error, std::string(function) + " hasn't returned for 1 s"));
  }
}

/// A replayed step is a launch, and questions whether it is done: nobody else
/// is asked, so that one rank may run without the other.
TEST_F(NcclSession, ReplaysCostOneCall) {
  static constexpr size_t steps = 50;
  std::barrier bothHaveRun(2);
  std::vector<std::string> errors =
      run("moves", [&](Session &session, int64_t rank) {
        for (int repeat = 0; repeat < 3; ++repeat)
          session.run(getInputs());
        bothHaveRun.arrive_and_wait();
        if (rank != 0)
          return;
        std::vector<std::string> before = fake::getCalls();
        size_t queries = fake::getNumQueries();
        RunResult result = session.run(getInputs(), {.repeat = steps});
        EXPECT_EQ(result.hostSeconds.size(), steps);
        std::vector<std::string> calls = fake::getCalls();
        // Besides those of the other rank, which frees what it has.
        std::map<std::string, size_t> numCalls;
        for (size_t i = before.size(); i < calls.size(); ++i)
          ++numCalls[calls[i].substr(0, calls[i].find(' '))];
        EXPECT_EQ(numCalls["cuGraphLaunch"], steps);
        EXPECT_EQ(numCalls["cuMemcpyHtoDAsync"], 1u); // the input
        EXPECT_EQ(numCalls["cuMemcpyDtoHAsync"], 1u); // the output
        EXPECT_EQ(numCalls["cuEventRecord"], 1u);     // of the input's copy
        EXPECT_EQ(numCalls["cuLaunchKernel"], 0u);
        EXPECT_EQ(numCalls["cuStreamWaitEvent"], 0u);
        EXPECT_EQ(numCalls["cuMemAlloc"], 0u);
        // One for each step; copies have few of their own.
        EXPECT_GE(fake::getNumQueries() - queries, steps);
        EXPECT_LE(fake::getNumQueries() - queries, steps + 10);
      });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST_F(NcclSession, ParametersComeTogetherAtRankZero) {
  std::vector<Job> jobs = makeJobs(2);
  runThreads(2, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(60));
    SessionOptions options;
    options.ranks = {rank};
    Session session(loadProgram(), getWeights(), options);
    int calls = 0;
    connection.withParameters(session, [&](const GetParameter &get) {
      ++calls;
      for (const auto &[name, tensor] : getWeights())
        EXPECT_EQ(getElements<float>(get(name)), getElements<float>(tensor));
      EXPECT_TRUE(contains(errorOf([&] { get("v"); }),
                           "the program has no parameter 'v'"));
    });
    EXPECT_EQ(calls, rank == 0);
    std::string error = errorOf([&] {
      connection.withParameters(session, [&](const GetParameter &get) {
        get("w");
        throw inputError("the disk is full");
      });
    });
    EXPECT_EQ(error, rank == 0 ? "the disk is full"
                               : "rank 0 failed: the disk is full");
  });
}

/// " is in or after" the program's collective, as the ranks say on a failure.
static const std::string place =
    " is in or after collective 0 (all_reduce of 'mlp.down')";

TEST_F(NcclSession, FailuresReachTheOthers) {
  std::vector<std::string> errors =
      run("fail_index",
          [](Session &session, int64_t) { session.run(getInputs()); });
  std::string message = "rank 1 failed: embeddings.word: embedding: index "
                        "30522 is out of range [0, 30522); rank 1" +
                        place;
  EXPECT_EQ(errors[1], message);
  EXPECT_EQ(errors[0], message + "; rank 0" + place);
  EXPECT_EQ(fake::countCalls("ncclCommAbort"), 2u);
}

TEST_F(NcclSession, AsynchronousErrors) {
  fake::hangKernels();
  fake::failCall("ncclCommGetAsyncError", 6);
  std::vector<std::string> errors = run(
      "tpx_main", [](Session &session, int64_t) { session.run(getInputs()); });
  EXPECT_TRUE(
      contains(errors[0], "a collective: as the fake NCCL says: world"));
  EXPECT_TRUE(
      contains(errors[1], "a collective: as the fake NCCL says: world"));
  EXPECT_EQ(fake::countCalls("ncclCommAbort"), 2u);
}

/// Rank 1 runs once less, also where the run is a graph.
TEST_F(NcclSession, SaysInWhichCollectiveARankWaits) {
  for (int64_t runs : {1, 2, 5}) {
    std::vector<std::string> errors(2);
    std::vector<Job> jobs = makeJobs(2);
    std::barrier isOver(2);
    runThreads(2, [&](int64_t rank) {
      Connection connection(jobs[rank], seconds(2));
      SessionOptions options;
      options.ranks = {rank};
      options.cuda.device = rank;
      options.communicator.timeout = seconds(2);
      options.makeCommunicators = makeNccl(connection);
      Session session(loadProgram(), getWeights(), options);
      for (int64_t i = 0; i < runs + (rank == 0); ++i)
        try {
          session.run(getInputs());
        } catch (const Error &error) {
          errors[rank] = error.what();
        }
      isOver.arrive_and_wait();
    });
    EXPECT_EQ(errors[1], "");
    EXPECT_TRUE(contains(errors[0], "no progress"));
    EXPECT_TRUE(contains(errors[0], "; rank 0" + place));
  }
}

TEST_F(NcclSession, AnotherNumberOfProcesses) {
  std::vector<Job> jobs = makeJobs(1);
  Connection connection(jobs[0], seconds(60));
  SessionOptions options;
  options.ranks = {0};
  options.makeCommunicators = makeNccl(connection);
  Session session(loadProgram(), getWeights(), options);
  EXPECT_EQ(errorOf([&] { session.run(getInputs()); }),
            "the program has 2 ranks, but there is 1 process");
  options.ranks = {2};
  EXPECT_EQ(errorOf([&] { Session(loadProgram(), getWeights(), options); }),
            "there is no rank 2: the program has 2 ranks");
}
