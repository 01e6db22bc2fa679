//===- SamplingTest.cpp - The choice of a token from split logits ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "generate/Sampling.h"

#include "Jobs.h"
#include "TestUtils.h"
#include "generate/Philox.h"

#include <barrier>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

using namespace tprt;
using namespace tprt::test;

/// Calls chooseTokens() on as many ranks as there are parts of the vocabulary,
/// which begin at `begins`, and returns what they all choose.
static std::vector<int64_t>
chooseOnRanks(const std::vector<std::vector<float>> &logits,
              std::vector<int64_t> begins, const SamplingOptions &options,
              int64_t step = 0) {
  int64_t numRanks = begins.size(), size = logits[0].size();
  begins.push_back(size);
  std::vector<std::string> contributions(numRanks), errors(numRanks);
  std::vector<std::vector<int64_t>> chosen(numRanks);
  std::barrier barrier(numRanks);
  runThreads(numRanks, [&](int64_t rank) {
    std::vector<LogitsPart> parts;
    for (size_t sequence = 0; sequence < logits.size(); ++sequence)
      parts.push_back(
          {static_cast<int64_t>(sequence), begins[rank],
           std::span(logits[sequence])
               .subspan(begins[rank], begins[rank + 1] - begins[rank])});
    Exchange exchange = [&](const std::string &mine) {
      EXPECT_LE(mine.size(), getMaxExchangedBytes(logits.size(), size));
      contributions[rank] = mine;
      barrier.arrive_and_wait();
      std::vector<std::string> all = contributions;
      barrier.arrive_and_wait();
      return all;
    };
    try {
      chosen[rank] =
          chooseTokens(parts, logits.size(), size, step, options, exchange);
    } catch (const Error &error) {
      errors[rank] = error.what();
      barrier.arrive_and_drop();
    }
  });
  for (int64_t rank = 0; rank < numRanks; ++rank)
    if (!errors[rank].empty())
      throw executionError(errors[rank]);
  for (int64_t rank = 1; rank < numRanks; ++rank)
    EXPECT_EQ(chosen[rank], chosen[0]);
  return chosen[0];
}

/// On one rank, without a thread.
static int64_t choose(const std::vector<float> &logits,
                      const SamplingOptions &options, int64_t step = 0) {
  return chooseTokens({{0, 0, logits}}, 1, logits.size(), step, options,
                      [](const std::string &mine) { return std::vector{mine}; })
      .front();
}

/// The known answers of its authors (Random123, kat_vectors).
TEST(Sampling, PhiloxGivesKnownNumbers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                     0x9b00dbd8}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420,
                                     0x24126ea1}));
}

TEST(Sampling, GumbelNumbersHaveBoundsAndMoments) {
  GumbelNumbers numbers(7, 3, 5);
  double sum = 0, squares = 0;
  constexpr int64_t count = 100000;
  for (int64_t token = 0; token < count; ++token) {
    double number = numbers.get(token);
    EXPECT_LE(number, numbers.getBound(token));
    sum += number;
    squares += number * number;
  }
  double mean = sum / count, variance = squares / count - mean * mean;
  EXPECT_NEAR(mean, 0.57722, 0.02);
  EXPECT_NEAR(variance, M_PI * M_PI / 6, 0.05);
}

TEST(Sampling, GreedyTakesTheFirstOfTheLargest) {
  std::vector<std::vector<float>> logits = {{1, 3, -INFINITY, 3, 2, 3},
                                            {0, -1, 0, -2, 0, -1}};
  for (const std::vector<int64_t> &begins :
       std::vector<std::vector<int64_t>>{{0}, {0, 2}, {0, 1, 1, 4}, {0, 5}})
    EXPECT_EQ(chooseOnRanks(logits, begins, {}), (std::vector<int64_t>{1, 0}));
}

/// Logits of which some are equal and some are -inf.
static std::vector<float> drawLogits(int64_t count, uint64_t seed) {
  std::mt19937_64 source(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits;
  for (int64_t i = 0; i < count; ++i)
    logits.push_back(i % 17 == 5  ? -INFINITY
                     : i % 3 == 0 ? std::round(normal(source) * 2) / 2
                                  : normal(source));
  return logits;
}

TEST(Sampling, DoesNotDependOnTheSplit) {
  std::vector<std::vector<float>> logits = {drawLogits(1000, 1),
                                            drawLogits(1000, 2)};
  std::vector<SamplingOptions> all = {{},
                                      {1, 0, 1, 3},
                                      {0.3, 0, 1, 4},
                                      {1, 20, 1, 5},
                                      {1.5, 0, 0.9, 6},
                                      {20, 0, 0.99, 7},
                                      {0.8, 50, 0.7, 8},
                                      {1e-6, 0, 0.5, 9}};
  std::set<int64_t> seen;
  for (const SamplingOptions &options : all)
    for (int64_t step = 0; step < 10; ++step) {
      std::vector<int64_t> expected = chooseOnRanks(logits, {0}, options, step);
      seen.insert(expected.begin(), expected.end());
      for (const std::vector<int64_t> &begins :
           std::vector<std::vector<int64_t>>{
               {0, 500}, {0, 334, 668}, {0, 1, 1, 3, 999}})
        EXPECT_EQ(chooseOnRanks(logits, begins, options, step), expected);
    }
  EXPECT_GT(seen.size(), 40u);
}

/// Sequences, steps and seeds draw independently.
TEST(Sampling, DrawsDiffer) {
  std::vector<float> even(1000, 0.5f);
  SamplingOptions options{1, 0, 1, 1};
  std::vector<int64_t> both = chooseOnRanks({even, even}, {0}, options, 0);
  EXPECT_NE(both[0], both[1]);
  EXPECT_EQ(both[0], choose(even, options, 0));
  EXPECT_NE(both[0], choose(even, options, 1));
  EXPECT_NE(choose(even, options, int64_t(1) << 32), both[0]);
  options.seed = 2;
  EXPECT_NE(both[0], choose(even, options, 0));
  options.seed = uint64_t(1) << 32 | 1;
  EXPECT_NE(both[0], choose(even, options, 0));
}

/// The probabilities by the definitions of transformers' warpers: temperature,
/// top-k, top-p.
static std::vector<double> getProbabilities(const std::vector<float> &logits,
                                            const SamplingOptions &options) {
  std::vector<double> weights;
  for (float logit : logits)
    weights.push_back(std::exp(logit / options.temperature));
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (options.topK > 0)
    for (size_t i : order)
      if (logits[i] < logits[order[options.topK - 1]])
        weights[i] = 0;
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double before = 0, left = 0;
  for (size_t i : order) {
    double weight = weights[i];
    if (before / total >= options.topP && before > 0)
      weights[i] = 0;
    before += weight;
    left += weights[i];
  }
  for (double &weight : weights)
    weight /= left;
  return weights;
}

TEST(Sampling, HasTheRightProbabilities) {
  std::vector<float> logits = {0.5, 2, 1, -INFINITY, 2, 0, 1.5, -1};
  for (const SamplingOptions &options :
       std::vector<SamplingOptions>{{1, 0, 1, 1},
                                    {0.7, 0, 1, 2},
                                    {1, 3, 1, 3},
                                    {1, 1, 1, 4}, // of two that are equal
                                    {2, 0, 0.6, 5},
                                    {0.5, 0, 0.9, 6},
                                    {1, 5, 0.7, 7},
                                    {1, 0, 1e-9, 8}}) {
    std::vector<double> probabilities = getProbabilities(logits, options);
    std::vector<double> counts(logits.size());
    constexpr int64_t numDraws = 20000;
    for (int64_t step = 0; step < numDraws; ++step)
      ++counts[choose(logits, options, step)];
    double chiSquare = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      double expected = probabilities[i] * numDraws;
      if (expected == 0)
        EXPECT_EQ(counts[i], 0) << "token " << i << ", seed " << options.seed;
      else
        chiSquare += std::pow(counts[i] - expected, 2) / expected;
    }
    // Of 7 degrees of freedom, exceeded once in 10^5.
    EXPECT_LT(chiSquare, 35) << "seed " << options.seed;
  }
}

TEST(Sampling, RefusesWrongLogits) {
  auto getError = [](std::vector<float> logits, SamplingOptions options) {
    return errorOf(
        [&] { chooseOnRanks({{1, 2, 3, 4}, logits}, {0, 2}, options, 6); });
  };
  for (const SamplingOptions &options :
       std::vector<SamplingOptions>{{}, {1}, {1, 2}, {1, 0, 0.5}}) {
    EXPECT_EQ(getError({0, 0, 0, NAN}, options),
              "the logit of token 3 is NaN, for token 6 of sequence 1");
    EXPECT_EQ(getError({0, INFINITY, 0, 0}, options),
              "the logit of token 1 is infinite, for token 6 of sequence 1");
    EXPECT_EQ(getError(std::vector<float>(4, -INFINITY), options),
              "all logits are -infinite, for token 6 of sequence 1");
  }
}

TEST(Sampling, RefusesWrongOptions) {
  auto getError = [](SamplingOptions options) {
    return errorOf([&] { checkSampling(options); });
  };
  EXPECT_EQ(getError({-1}), "found a temperature of -1, expected 0, for the "
                            "most likely token, or at least 1e-06");
  EXPECT_TRUE(contains(getError({NAN}), "found a temperature of nan"));
  EXPECT_EQ(getError({1, -1}),
            "found a top-k of -1, expected 0, for all tokens, or more");
  EXPECT_EQ(getError({1, 0, 0}),
            "found a top-p of 0, expected a number in (0, 1]");
  EXPECT_TRUE(contains(getError({1, 0, 1.5}), "found a top-p of 1.5"));
  EXPECT_TRUE(contains(getError({0, 5}), "needs a temperature above 0"));
  checkSampling({1, 5, 0.5});
}
