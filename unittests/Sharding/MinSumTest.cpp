//===- MinSumTest.cpp - Cheapest assignments, against enumeration ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Propagation/MinSum.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::tp;

namespace {

/// A problem, and the same problem in a form that is easily enumerated.
struct Problem {
  struct Factor {
    std::vector<CommunicationCost> costs;
    std::vector<unsigned> scope;
  };

  unsigned addVariable(unsigned size) {
    domains.push_back(size);
    return problem.addVariable(size);
  }
  void addFactor(std::vector<CommunicationCost> costs,
                 std::vector<unsigned> scope) {
    std::vector<unsigned> dims;
    for (unsigned variable : scope)
      dims.push_back(domains[variable]);
    problem.addFactor(problem.addTable(dims, costs), scope);
    factors.push_back({std::move(costs), std::move(scope)});
  }

  CommunicationCost evaluate(const std::vector<unsigned> &values) const {
    CommunicationCost sum;
    for (const Factor &factor : factors)
      sum += lookUp(factor, values);
    return sum;
  }
  CommunicationCost lookUp(const Factor &factor,
                           const std::vector<unsigned> &values) const {
    size_t index = 0;
    for (unsigned variable : factor.scope)
      index = index * domains[variable] + values[variable];
    return factor.costs[index];
  }

  CommunicationCost getOptimum() const {
    CommunicationCost best = CommunicationCost::infinite();
    std::vector<unsigned> values(domains.size(), 0);
    do {
      best = std::min(best, evaluate(values));
    } while (advance(values));
    return best;
  }
  bool advance(std::vector<unsigned> &values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      if (++values[i] < domains[i])
        return true;
      values[i] = 0;
    }
    return false;
  }

  MinSum problem;
  std::vector<unsigned> domains;
  std::vector<Factor> factors;
};

class RandomProblems {
public:
  explicit RandomProblems(unsigned seed) : random(seed) {}

  unsigned draw(unsigned low, unsigned high) {
    return std::uniform_int_distribution<unsigned>(low, high)(random);
  }

  /// `percent` of the entries are infinite.
  std::unique_ptr<Problem> next(unsigned percent) {
    auto problem = std::make_unique<Problem>();
    for (unsigned i = 0, e = draw(1, 8); i < e; ++i)
      problem->addVariable(draw(1, 5));
    size_t numVariables = problem->domains.size();
    for (unsigned i = 0, e = draw(0, 12); i < e; ++i) {
      std::vector<unsigned> scope;
      for (unsigned j = 0, n = draw(1, 3); j < n; ++j)
        if (unsigned variable = draw(0, numVariables - 1);
            !llvm::is_contained(scope, variable))
          scope.push_back(variable);
      addFactor(*problem, std::move(scope), percent);
    }
    return problem;
  }

  /// The costs of a table over so many combinations.
  std::vector<CommunicationCost> nextCosts(size_t size, unsigned percent) {
    std::vector<CommunicationCost> costs;
    for (size_t i = 0; i < size; ++i)
      costs.push_back(draw(1, 100) <= percent
                          ? CommunicationCost::infinite()
                          : CommunicationCost{draw(0, 7) == 0, draw(0, 2),
                                              draw(0, 2), draw(0, 1),
                                              draw(0, 3)});
    return costs;
  }

private:
  void addFactor(Problem &problem, std::vector<unsigned> scope,
                 unsigned percent) {
    size_t size = 1;
    for (unsigned variable : scope)
      size *= problem.domains[variable];
    // Often one that is there already, maybe over other variables.
    if (draw(0, 2) == 0)
      for (const Problem::Factor &factor : problem.factors)
        if (factor.costs.size() == size)
          return problem.addFactor(factor.costs, std::move(scope));
    problem.addFactor(nextCosts(size, percent), std::move(scope));
  }

  std::mt19937 random;
};

class RandomMinSum : public testing::TestWithParam<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Infinite, RandomMinSum, testing::Values(0, 10, 60));

TEST_P(RandomMinSum, SolvesExactly) {
  RandomProblems problems(1);
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    auto problem = problems.next(GetParam());
    CommunicationCost optimum = problem->getOptimum();
    MinSum::Solution solution = problem->problem.solve(size_t(1) << 20);
    ASSERT_EQ(solution.cost, optimum);
    ASSERT_EQ(solution.lowerBound, optimum);
    ASSERT_EQ(problem->evaluate(solution.values), optimum);
    // A second run starts from the same problem.
    ASSERT_EQ(problem->problem.solve(size_t(1) << 20).cost, optimum);
  }
}

TEST_P(RandomMinSum, BoundsWhatIsTooLarge) {
  RandomProblems problems(2);
  int numInexact = 0;
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    auto problem = problems.next(GetParam());
    CommunicationCost optimum = problem->getOptimum();
    for (size_t maxEntries : {1, 4, 30}) {
      MinSum::Solution solution = problem->problem.solve(maxEntries);
      ASSERT_EQ(problem->evaluate(solution.values), solution.cost);
      ASSERT_FALSE(solution.cost < optimum);
      ASSERT_FALSE(optimum < solution.lowerBound);
      numInexact += solution.lowerBound < solution.cost;
    }
  }
  // The bound is put to the test.
  EXPECT_GT(numInexact, 10);
}

TEST_P(RandomMinSum, SolvesExactlyOrNotAtAll) {
  RandomProblems problems(6);
  int numUnsolved = 0;
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    auto problem = problems.next(GetParam());
    CommunicationCost optimum = problem->getOptimum();
    for (size_t maxEntries : {1, 4, 30, 1 << 20}) {
      auto solution = problem->problem.solveExactly(maxEntries);
      numUnsolved += !solution;
      if (!solution)
        continue;
      ASSERT_EQ(solution->cost, optimum);
      ASSERT_EQ(problem->evaluate(solution->values), optimum);
    }
  }
  EXPECT_GT(numUnsolved, 10);
}

/// Two parts that want different values: each alone is free, both together
/// cost what one of them must give up.
TEST(MinSum, ShiftsCostsBetweenParts) {
  MinSum problem;
  unsigned x = problem.addVariable(2);
  CommunicationCost cost{0, 10, 10, 1, 0};
  TableId wantsFirst = problem.addTable({2, 2}, {{}, {}, cost, cost});
  TableId wantsSecond = problem.addTable({2, 2}, {cost, cost, {}, {}});
  for (TableId table : {wantsFirst, wantsSecond, wantsFirst, wantsSecond}) {
    unsigned other = problem.addVariable(2);
    problem.addFactor(table, {x, other});
    // It isn't eliminated first.
    for (unsigned i = 0; i < 3; ++i)
      problem.addFactor(problem.addTable({2, 2}, {{}, {}, {}, {}}),
                        {other, problem.addVariable(2)});
  }
  MinSum::Solution solution = problem.solve(4);
  EXPECT_EQ(solution.cost, cost * 2);
  EXPECT_EQ(solution.lowerBound, cost * 2);
}

TEST_P(RandomMinSum, GreedyIsAnAssignment) {
  RandomProblems problems(3);
  int numWorse = 0;
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    auto problem = problems.next(GetParam());
    CommunicationCost optimum = problem->getOptimum();
    MinSum::Solution solution = problem->problem.solveGreedily();
    ASSERT_EQ(problem->evaluate(solution.values), solution.cost);
    ASSERT_FALSE(solution.cost < optimum);
    ASSERT_EQ(solution.lowerBound, CommunicationCost());
    numWorse += optimum < solution.cost;
    // No single variable does better.
    for (size_t variable = 0; variable < problem->domains.size(); ++variable) {
      std::vector<unsigned> values = solution.values;
      for (unsigned value = 0; value < problem->domains[variable]; ++value) {
        values[variable] = value;
        ASSERT_FALSE(problem->evaluate(values) < solution.cost);
      }
    }
  }
  EXPECT_GT(numWorse, 0);
}

TEST(MinSum, PrefersTheFirstOfEqualValues) {
  Problem problem;
  problem.addVariable(3);
  problem.addFactor({{0, 2}, {0, 1}, {0, 1}}, {0});
  EXPECT_EQ(problem.problem.solve(100).values, std::vector<unsigned>{1});
  EXPECT_EQ(problem.problem.solveGreedily().values, std::vector<unsigned>{1});
}

TEST(MinSum, SolvesNothing) {
  MinSum problem;
  MinSum::Solution solution = problem.solve(10);
  EXPECT_TRUE(solution.values.empty());
  EXPECT_EQ(solution.cost, CommunicationCost());
}

/// A chain that repeats a layer has few distinct steps, however long it is: the
/// 10^12 sums of all of them would take hours.
TEST(MinSum, SharesStepsOfARepeatingChain) {
  constexpr unsigned kLength = 100'000, kSize = 200;
  MinSum problem;
  std::vector<CommunicationCost> step;
  for (unsigned from = 0; from < kSize; ++from)
    for (unsigned to = 0; to < kSize; ++to)
      step.push_back({0, from == to ? 0 : 1 + (from * 7 + to * 3) % 5});
  TableId edge = problem.addTable({kSize, kSize}, step);
  std::vector<CommunicationCost> ends(kSize, CommunicationCost::infinite());
  ends[5] = {};
  TableId end = problem.addTable({kSize}, ends);
  std::vector<CommunicationCost> own(kSize);
  for (unsigned value = 0; value < kSize; ++value)
    own[value] = {0, value == 3 ? 0 : 1};
  TableId middle = problem.addTable({kSize}, own);
  for (unsigned i = 0; i < kLength; ++i) {
    problem.addVariable(kSize);
    problem.addFactor(i == 0 || i + 1 == kLength ? end : middle, {i});
    if (i > 0)
      problem.addFactor(edge, {i - 1, i});
  }
  MinSum::Solution solution = problem.solve(size_t(1) << 16);
  EXPECT_EQ(solution.cost, solution.lowerBound);
  // From 5 to 3, which costs nothing to stay at, and back.
  CommunicationCost between = step[5 * kSize + 3] + step[3 * kSize + 5];
  EXPECT_EQ(solution.cost, between);
  EXPECT_EQ(solution.values.front(), 5u);
  EXPECT_EQ(solution.values[kLength / 2], 3u);
  EXPECT_EQ(solution.values.back(), 5u);
}

//===----------------------------------------------------------------------===//
// Repeated layers
//===----------------------------------------------------------------------===//

/// A head, layers in a row of which the first has no factors to one before, and
/// a rest. Only tied variables of a layer have factors with the next.
struct Chain {
  /// Variables by place; those of layers first, then those of the head, or the
  /// rest.
  struct Factor {
    std::vector<CommunicationCost> costs;
    /// Places in the layer before, in the layer (or in the last one), and in
    /// the head or the rest.
    std::vector<unsigned> before, layer, other;
  };

  Chain(RandomProblems &random, unsigned percent) {
    auto drawDomains = [&](std::vector<unsigned> &domains, unsigned least) {
      for (unsigned i = 0, e = random.draw(least, 3); i < e; ++i)
        domains.push_back(random.draw(1, 4));
    };
    drawDomains(head, 0);
    drawDomains(layer, 1);
    drawDomains(rest, 1);
    for (unsigned place = 0; place < layer.size(); ++place)
      if (random.draw(0, 1))
        tied.push_back(place);
    auto drawPlace = [&](const std::vector<unsigned> &domains) {
      return random.draw(0, domains.size() - 1);
    };
    auto add = [&](std::vector<Factor> &to, Factor factor,
                   const std::vector<unsigned> &others) {
      size_t size = 1;
      for (unsigned place : factor.before)
        size *= layer[place];
      for (unsigned place : factor.layer)
        size *= layer[place];
      for (unsigned place : factor.other)
        size *= others[place];
      factor.costs = random.nextCosts(size, percent);
      to.push_back(std::move(factor));
    };
    for (unsigned place : tied) {
      add(ofLayer, {{}, {place}, {drawPlace(layer)}, {}}, {});
      add(ofRest, {{}, {}, {place}, {drawPlace(rest)}}, rest);
    }
    for (unsigned place = 0; place < layer.size(); ++place) {
      add(ofLayer, {{}, {}, {place}, {}}, {});
      if (unsigned other = drawPlace(layer); other != place)
        add(ofLayer, {{}, {}, {place, other}, {}}, {});
      if (!head.empty())
        add(ofHead, {{}, {}, {place}, {drawPlace(head)}}, head);
    }
    for (unsigned place = 0; place < rest.size(); ++place)
      add(ofRest, {{}, {}, {}, {place}}, rest);
  }

  /// The problem with `numLayers` layers after the first.
  std::unique_ptr<Problem> make(unsigned numLayers, bool isRepeated) const {
    auto problem = std::make_unique<Problem>();
    auto addAll = [&](const std::vector<unsigned> &domains) {
      unsigned begin = problem->domains.size();
      for (unsigned size : domains)
        problem->addVariable(size);
      return begin;
    };
    unsigned headBegin = addAll(head), before = addAll(layer), last = before;
    auto addFactors = [&](const std::vector<Factor> &factors, unsigned others) {
      for (const Factor &factor : factors) {
        std::vector<unsigned> scope;
        for (unsigned place : factor.before)
          scope.push_back(before + place);
        for (unsigned place : factor.layer)
          scope.push_back(last + place);
        for (unsigned place : factor.other)
          scope.push_back(others + place);
        problem->addFactor(factor.costs, scope);
      }
    };
    addFactors(ofHead, headBegin);
    for (unsigned i = 0; i < (isRepeated ? 1 : numLayers); ++i) {
      if (isRepeated)
        problem->problem.beginRepeated(numLayers);
      before = std::exchange(last, addAll(layer));
      if (isRepeated)
        problem->problem.endRepeated();
      addFactors(ofLayer, 0);
    }
    addFactors(ofRest, addAll(rest));
    return problem;
  }

  /// The values of all layers' variables.
  std::vector<unsigned> expand(const MinSum::Solution &solution) const {
    std::vector<unsigned> values(solution.values.begin(),
                                 solution.values.begin() + head.size() +
                                     layer.size());
    for (unsigned index : solution.layers)
      llvm::append_range(values, solution.layerValues[index]);
    values.insert(values.end(), solution.values.end() - rest.size(),
                  solution.values.end());
    return values;
  }

  std::vector<unsigned> head, layer, rest, tied;
  std::vector<Factor> ofHead, ofLayer, ofRest;
};

TEST_P(RandomMinSum, SolvesRepeatedPartsAsIfWrittenOut) {
  RandomProblems random(5);
  int numSolved = 0;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    Chain chain(random, GetParam());
    unsigned numLayers = random.draw(1, 12);
    auto repeated = chain.make(numLayers, /*isRepeated=*/true);
    auto all = chain.make(numLayers, /*isRepeated=*/false);
    MinSum::Solution expected = all->problem.solve(size_t(1) << 20);
    for (int run = 0; run < 2; ++run) {
      auto solution = repeated->problem.solveRepeated(size_t(1) << 20);
      if (expected.cost.isInfinite()) {
        ASSERT_FALSE(solution);
        continue;
      }
      ASSERT_TRUE(solution);
      ++numSolved;
      ASSERT_EQ(solution->cost, expected.cost);
      ASSERT_EQ(solution->lowerBound, expected.cost);
      std::vector<unsigned> values = chain.expand(*solution);
      ASSERT_EQ(all->evaluate(values), expected.cost);
      ASSERT_EQ(solution->layerValues[solution->layers.back()],
                std::vector<unsigned>(values.end() - chain.rest.size() -
                                          chain.layer.size(),
                                      values.end() - chain.rest.size()));
    }
  }
  EXPECT_GT(numSolved, GetParam() == 60 ? 5 : 300);
}

TEST(MinSum, RefusesPartsThatHangTogetherOtherwise) {
  auto make = [](llvm::ArrayRef<unsigned> scope) {
    auto problem = std::make_unique<Problem>();
    std::vector<CommunicationCost> costs = {{1}, {0}, {0}, {1}};
    problem->addVariable(2);
    problem->addVariable(2);
    problem->problem.beginRepeated(10);
    problem->addVariable(2);
    problem->problem.endRepeated();
    problem->addVariable(2);
    problem->addFactor(costs, {0, 1});
    problem->addFactor(costs, {1, 2});
    problem->addFactor(costs, {2, 3});
    if (!scope.empty())
      problem->addFactor(costs, scope.vec());
    return problem;
  };
  EXPECT_TRUE(make({})->problem.solveRepeated(100));
  // A layer with what is before the one before it, the rest with the head.
  EXPECT_FALSE(make({0, 2})->problem.solveRepeated(100));
  EXPECT_FALSE(make({0, 3})->problem.solveRepeated(100));
  // Too small to be exact.
  EXPECT_FALSE(make({})->problem.solveRepeated(1));
}

TEST(MinSum, RefusesPartsThatNeverBecomeSteady) {
  auto isSolved = [](unsigned count) {
    MinSum problem;
    // Whoever is at 1 stays there, and pays for it.
    TableId edge = problem.addTable({2, 2}, {{0},
                                             CommunicationCost::infinite(),
                                             CommunicationCost::infinite(),
                                             {1}});
    problem.addVariable(2);
    problem.beginRepeated(count);
    problem.addVariable(2);
    problem.endRepeated();
    problem.addVariable(2);
    problem.addFactor(edge, {0, 1});
    problem.addFactor(edge, {1, 2});
    return problem.solveRepeated(100).has_value();
  };
  EXPECT_TRUE(isSolved(20));
  EXPECT_FALSE(isSolved(1000));
}

TEST(MinSum, EliminatesAlikePartsOnce) {
  constexpr unsigned kSize = 200;
  MinSum problem;
  std::vector<CommunicationCost> step;
  for (unsigned from = 0; from < kSize; ++from)
    for (unsigned to = 0; to < kSize; ++to)
      step.push_back({0, from == to ? 0 : 1 + (from * 7 + to * 3) % 5});
  TableId edge = problem.addTable({kSize, kSize}, step);
  TableId own = problem.addTable(
      {kSize}, std::vector<CommunicationCost>(kSize, CommunicationCost{0, 1}));
  problem.addVariable(kSize);
  problem.beginRepeated(1000);
  problem.addVariable(kSize);
  problem.endRepeated();
  problem.addVariable(kSize);
  problem.addFactor(edge, {0, 1});
  problem.addFactor(edge, {1, 2});
  problem.addFactor(own, {1});
  auto solution = problem.solveRepeated(size_t(1) << 16);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->cost, (CommunicationCost{0, 1000}));
  EXPECT_EQ(solution->layers.size(), 1000u);
  EXPECT_LE(solution->layerValues.size(), 2u);
}

} // namespace
