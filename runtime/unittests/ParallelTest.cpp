//===- ParallelTest.cpp - Tests of work on several threads ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/Parallel.h"
#include "LoneRank.h"
#include "cpu/Gemm.h"
#include "support/Cores.h"

#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tprt;

/// Every index is done once, and what was done is seen afterwards, however
/// often the same helpers are called: also by few of them, or by more.
TEST(ParallelTest, DoesEachIndexOnce) {
  for (int round = 0; round < 3000; ++round) {
    int64_t count = round % 37, numThreads = 1 + round % 5;
    std::vector<int> done(count, 0);
    parallelFor(count, numThreads, [&](int64_t i) { done[i] += round + 1; });
    for (int value : done)
      ASSERT_EQ(value, round + 1);
  }
}

TEST(ParallelTest, UsesNoMoreThreadsThanItMay) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallelFor(200, 3, [&](int64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::lock_guard<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_GE(threads.size(), 2u);
  EXPECT_LE(threads.size(), 3u);
}

TEST(ParallelTest, UsesThePoolOfItsScope) {
  int core = getUsableCores().front();
  // Whether a helper has worked on the core, and which helpers have.
  auto run = [&] {
    std::mutex mutex;
    std::set<std::thread::id> helpers;
    bool isOnCore = true;
    std::thread::id caller = std::this_thread::get_id();
    parallelFor(200, 2, [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (std::this_thread::get_id() == caller)
        return;
      std::lock_guard<std::mutex> lock(mutex);
      helpers.insert(std::this_thread::get_id());
      isOnCore &= ::sched_getcpu() == core;
    });
    EXPECT_EQ(helpers.size(), 1u);
    return std::pair(helpers, isOnCore);
  };
  std::thread([&] {
    auto own = run().first;
    {
      ThreadPool pool({core});
      ThreadPool::Scope scope(pool);
      auto [helpers, isOnCore] = run();
      EXPECT_NE(helpers, own);
      EXPECT_TRUE(isOnCore);
      EXPECT_EQ(run(), std::pair(helpers, true));
    }
    EXPECT_EQ(run().first, own);
  }).join();
}

/// A process that is forked has no threads, and ends nevertheless.
TEST(ParallelTest, EndsInAForkedProcess) {
  std::atomic<int64_t> sum{0};
  auto add = [&] { parallelFor(5, 2, [&](int64_t i) { sum += i; }); };
  std::thread([&] {
    std::optional<ThreadPool> pool(std::in_place);
    ThreadPool::Scope scope(*pool);
    add();
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      add();
      pool.reset();
      ::_exit(sum == 20 ? 0 : 1);
    }
    int status = -1;
    pid_t ended = 0;
    for (int i = 0; i < 1000 && ended == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ended = ::waitpid(child, &status, WNOHANG);
    }
    if (ended == 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
    }
    EXPECT_EQ(ended, child) << "the process hangs";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }).join();
}

TEST(ParallelTest, WorksWithinWork) {
  std::atomic<int64_t> sum{0};
  parallelFor(8, 3, [&](int64_t i) {
    parallelFor(4, 2, [&](int64_t j) { sum += 4 * i + j; });
  });
  EXPECT_EQ(sum, 31 * 32 / 2);
}

/// Threads that each have helpers, as ranks do, and end while those sleep.
TEST(ParallelTest, ServesSeveralThreadsAtATime) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        parallelFor(5, 2, [&](int64_t i) { sum += i; });
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(sum, 4 * 200 * 10);
}

TEST(ParallelTest, ThrowsWhatWorkThrows) {
  for (int round = 0; round < 100; ++round)
    EXPECT_THROW(parallelFor(8, 3,
                             [](int64_t i) {
                               if (i == 3)
                                 throw executionError("three");
                             }),
                 Error);
  std::atomic<int64_t> done{0};
  parallelFor(8, 3, [&](int64_t) { ++done; });
  EXPECT_EQ(done, 8);
}

namespace {

/// Adds 1 to what it is called for, and counts its calls.
struct Counted {
  std::vector<int> elements;
  std::atomic<int> calls{0};
  std::atomic<int64_t> wrong{0};
};

} // namespace

static void count(const uint64_t *arguments, int64_t begin, int64_t end) {
  Counted &counted = *reinterpret_cast<Counted *>(arguments[0]);
  ++counted.calls;
  if (arguments[1] != 42 || begin >= end)
    ++counted.wrong;
  for (int64_t i = begin; i < end; ++i)
    ++counted.elements[i];
}

/// How often tprt_parallel calls a kernel, which it checks.
static int countCalls(int threads, int64_t size, int64_t nanoseconds) {
  test::LoneRank lone;
  lone.rank.gemm.setThreads(threads);
  Counted counted{std::vector<int>(size)};
  uint64_t arguments[] = {reinterpret_cast<uint64_t>(&counted), 42};
  EXPECT_EQ(tprt_parallel(&lone.rank, count, arguments, size, nanoseconds),
            TPRT_OK);
  EXPECT_EQ(counted.elements, std::vector<int>(size, 1));
  EXPECT_EQ(counted.wrong, 0);
  return counted.calls;
}

TEST(ParallelTest, SharesOutKernels) {
  EXPECT_EQ(countCalls(1, 1000, 10'000'000), 1);
  EXPECT_EQ(countCalls(4, 1000, 30'000), 1); // not worth it
  EXPECT_GT(countCalls(4, 1000, 10'000'000), 4);
  EXPECT_EQ(countCalls(4, 3, 10'000'000), 3);
}
