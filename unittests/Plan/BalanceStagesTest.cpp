//===- BalanceStagesTest.cpp - Stages of equal predicted time -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Plan/BalanceStages.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

std::vector<StageLoad> makeLoads(ArrayRef<double> seconds) {
  std::vector<StageLoad> loads;
  for (double each : seconds)
    loads.push_back({each, 1});
  return loads;
}

TEST(BalanceStages, TheSlowestGroupCountsFirst) {
  EXPECT_EQ(balance(makeLoads({1, 2, 3, 4}), 2, kNoLimit),
            (SmallVector<size_t>{3}));
  // Any cut into three has a group of 8; the others are as equal as possible.
  EXPECT_EQ(balance(makeLoads({8, 1, 1, 1, 1}), 3, kNoLimit),
            (SmallVector<size_t>{1, 3}));
  EXPECT_EQ(balance(makeLoads({1, 1, 1}), 1, kNoLimit),
            (SmallVector<size_t>{}));
}

TEST(BalanceStages, BytesAreLimited) {
  std::vector<StageLoad> loads = {{1, 4}, {1, 4}, {1, 4}, {3, 4}};
  EXPECT_EQ(balance(loads, 2, kNoLimit), (SmallVector<size_t>{3}));
  EXPECT_EQ(balance(loads, 2, 8), (SmallVector<size_t>{2}));
  EXPECT_EQ(balance(loads, 2, 7), std::nullopt);
}

/// The least time of the slowest group, by trying all cuts.
double findSlowest(ArrayRef<StageLoad> loads, size_t numGroups,
                   int64_t maxBytes) {
  double best = std::numeric_limits<double>::infinity();
  size_t numCuts = loads.size() - 1;
  for (size_t cuts = 0; cuts < size_t(1) << numCuts; ++cuts) {
    double slowest = 0;
    size_t groups = 1;
    StageLoad own;
    bool fits = true;
    for (size_t i = 0; i < loads.size(); ++i) {
      if (i > 0 && (cuts >> (i - 1) & 1)) {
        own = {};
        ++groups;
      }
      own.seconds += loads[i].seconds;
      own.bytes += loads[i].bytes;
      fits &= own.bytes <= maxBytes;
      slowest = std::max(slowest, own.seconds);
    }
    if (groups == numGroups && fits)
      best = std::min(best, slowest);
  }
  return best;
}

TEST(BalanceStages, NoCutIsFaster) {
  std::mt19937 random(7);
  auto draw = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  };
  for (int round = 0; round < 500; ++round) {
    SmallVector<StageLoad> loads(draw(9));
    for (StageLoad &load : loads)
      load = {static_cast<double>(draw(20)), draw(8)};
    size_t numGroups = draw(loads.size());
    int64_t maxBytes = draw(30);
    double expected = findSlowest(loads, numGroups, maxBytes);
    auto begins = balance(loads, numGroups, maxBytes);
    ASSERT_EQ(begins.has_value(), std::isfinite(expected));
    if (!begins)
      continue;
    ASSERT_EQ(begins->size(), numGroups - 1);
    double slowest = 0, own = 0;
    size_t next = 0;
    for (size_t i = 0; i < loads.size(); ++i) {
      if (next < begins->size() && (*begins)[next] == i) {
        own = 0;
        ++next;
      }
      own += loads[i].seconds;
      slowest = std::max(slowest, own);
    }
    EXPECT_EQ(next, begins->size());
    EXPECT_EQ(slowest, expected);
  }
}

} // namespace
