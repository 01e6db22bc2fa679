//===- FlowBoundTest.cpp - Bounds of flows, against enumeration -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Propagation/FlowBound.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::tp;

namespace {

/// A small problem, and every assignment of it.
struct Flows {
  explicit Flows(unsigned seed, unsigned maxUses) : random(seed) {
    unsigned numVariables = draw(2, 6);
    for (unsigned i = 0; i < numVariables; ++i) {
      std::vector<double> costs(draw(1, 4));
      for (double &cost : costs)
        cost = draw(0, 3) ? 0 : draw(0, 12) * 5;
      domains.push_back(costs.size());
      bound.addVariable(std::move(costs));
    }
    for (unsigned i = 0, e = draw(1, 5); i < e; ++i) {
      unsigned numHad = draw(1, 3), numWanted = draw(1, 10);
      std::vector<double> costs(size_t(numHad) * numWanted);
      for (double &cost : costs)
        cost = draw(0, 9) == 0 ? FlowBound::kInfinite : draw(0, 20) * 5;
      auto getPort = [&](unsigned numStates) {
        unsigned variable = draw(0, numVariables - 1);
        FlowBound::Port port{variable, {}};
        for (unsigned value = 0; value < domains[variable]; ++value)
          port.states.push_back(draw(0, numStates - 1));
        return port;
      };
      auto definition = getPort(numHad);
      std::vector<FlowBound::Port> uses;
      for (unsigned use = 0, n = draw(1, maxUses); use < n; ++use)
        uses.push_back(getPort(numWanted));
      bound.addValue(bound.addMoves(numHad, numWanted, costs),
                     std::move(definition), std::move(uses));
    }
  }

  unsigned draw(unsigned low, unsigned high) {
    return std::uniform_int_distribution<unsigned>(low, high)(random);
  }

  template <typename Visit>
  void forEachAssignment(Visit visit) const {
    std::vector<unsigned> values(domains.size(), 0);
    for (;;) {
      visit(values);
      size_t i = 0;
      while (i < values.size() && ++values[i] == domains[i])
        values[i++] = 0;
      if (i == values.size())
        return;
    }
  }

  std::mt19937 random;
  FlowBound bound;
  std::vector<unsigned> domains;
};

class RandomFlows : public testing::TestWithParam<unsigned> {};

/// With up to four uses sharing is counted exactly, with more in groups.
INSTANTIATE_TEST_SUITE_P(MaxUses, RandomFlows, testing::Values(1, 2, 4, 9));

TEST_P(RandomFlows, BoundsAndKeepsEveryOptimum) {
  unsigned numTight = 0, numRemoved = 0, numPossible = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    Flows flows(seed, GetParam());
    ASSERT_TRUE(flows.bound.isExact());
    double optimum = FlowBound::kInfinite;
    flows.forEachAssignment([&](const std::vector<unsigned> &values) {
      optimum = std::min(optimum, flows.bound.evaluate(values));
    });
    for (uint64_t budget : {1, 100000}) {
      flows.bound.run(budget);
      ASSERT_LE(flows.bound.getLowerBound(), optimum);
      ASSERT_GE(flows.bound.getCost(), optimum);
      if (flows.bound.getCost() < FlowBound::kInfinite)
        ASSERT_EQ(flows.bound.evaluate(flows.bound.getValues()),
                  flows.bound.getCost());
    }
    if (optimum == FlowBound::kInfinite)
      continue;
    ++numPossible;
    numTight += flows.bound.getLowerBound() == flows.bound.getCost();
    for (unsigned i = 0; i < flows.domains.size(); ++i)
      numRemoved += flows.domains[i] - flows.bound.getKept(i).count();
    flows.forEachAssignment([&](const std::vector<unsigned> &values) {
      if (flows.bound.evaluate(values) > optimum)
        return;
      for (unsigned i = 0; i < values.size(); ++i)
        EXPECT_TRUE(flows.bound.getKept(i).test(values[i]));
    });
    if (HasFailure())
      return;
  }
  RecordProperty("tight", numTight);
  EXPECT_GT(numTight, numPossible / (GetParam() > 4 ? 5 : 2));
  EXPECT_GT(numRemoved, numPossible);
}

/// Where uses want the same, only one of them pays.
TEST(FlowBound, CountsSharedMovesOnce) {
  FlowBound bound;
  unsigned definition = bound.addVariable({0});
  std::vector<FlowBound::Port> uses;
  for (unsigned i = 0; i < 3; ++i)
    uses.push_back({bound.addVariable({0, 0}), {0, 1}});
  bound.addValue(bound.addMoves(1, 2, {70, 90}), {definition, {0}},
                 std::move(uses));
  bound.run(1000);
  EXPECT_EQ(bound.getLowerBound(), 70);
  EXPECT_EQ(bound.getCost(), 70);
}

TEST(FlowBound, SaysThatNothingIsPossible) {
  FlowBound bound;
  unsigned definition = bound.addVariable({0, 0}), use = bound.addVariable({0});
  bound.addValue(
      bound.addMoves(2, 1, {FlowBound::kInfinite, FlowBound::kInfinite}),
      {definition, {0, 1}}, {{use, {0}}});
  bound.run(1000);
  EXPECT_EQ(bound.getLowerBound(), FlowBound::kInfinite);
  EXPECT_EQ(bound.getCost(), FlowBound::kInfinite);
}

/// Sums that doubles don't hold would depend on their order.
TEST(FlowBound, RefusesWhatIsTooLarge) {
  FlowBound bound;
  bound.addVariable({1e15, 9e15});
  EXPECT_TRUE(bound.isExact());
  bound.addVariable({1e15});
  EXPECT_FALSE(bound.isExact());
}

} // namespace
