//===- ParallelTest.cpp - Tests of work on several threads ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/Parallel.h"
#include "LoneRank.h"
#include "cpu/Gemm.h"

#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <thread>

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
