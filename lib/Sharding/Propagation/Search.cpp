//===- Search.cpp - The search for the cheapest choice --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Search.h"
#include "Candidates.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// The largest table of a value, its copies and a use, for a search that
/// needn't be exact.
constexpr size_t kMaxCopyEntries = size_t(1) << 22;

static const Domains kNone;

/// `domains` with only the candidate of each node that `choose` names, or all
/// of its candidates if none has the same placements.
static Domains getOnly(Domains domains, StrategySpace &space,
                       function_ref<const Strategy &(unsigned node)> choose) {
  for (auto [node, domain] : llvm::enumerate(domains)) {
    const Strategy &chosen = choose(node);
    llvm::BitVector only(domain->strategies.size());
    auto it = llvm::find_if(domain->strategies, [&](const Strategy &strategy) {
      return strategy.operands == chosen.operands &&
             strategy.results == chosen.results;
    });
    if (it == domain->strategies.end())
      continue;
    only.set(it - domain->strategies.begin());
    domain = space.getPart(domain, only);
  }
  return domains;
}

Decision Search::run(int64_t priority, const Choice *before) {
  graph.spread(priority, /*seedsSegments=*/options.objective != nullptr);
  auto decide = [&](bool isExhaustive) {
    Decision decision;
    decision.candidates =
        getCandidates(graph, space, costs, priority, isExhaustive, before);
    decision.choice = choose(decision.candidates);
    return decision;
  };
  bool isExhaustive = options.strategy == PropagationStrategy::Optimal &&
                      options.isExhaustive(graph.numOps);
  Decision decision = decide(isExhaustive);
  CommunicationCost bound = decision.choice.lowerBound;
  if (!isExhaustive || decision.choice.cost == bound)
    return decision;
  // With fewer strategies, a bounded search may find a better solution.
  Decision other = decide(/*isExhaustive=*/false);
  if (other.choice.cost < decision.choice.cost)
    decision = std::move(other);
  decision.choice.lowerBound = bound;
  return decision;
}

/// Once all moves of a choice are planned, it is the cheapest that the search
/// finds, because other choices cost at least what was counted for them. If
/// moves cost more than was counted, the search is repeated within its budget.
/// A search that isn't exact ends early if it has found an optimum. Lower
/// bounds stay valid throughout.
Choice Search::choose(const Domains &candidates) {
  costs.resetBudget();
  const Domains &replacements =
      options.strategy == PropagationStrategy::Greedy ? kNone : candidates;
  std::optional<Choice> best;
  CommunicationCost lowerBound;
  for (bool isPlanned = false; !isPlanned;) {
    auto [choice, isExact] = chooseByKnownCosts(candidates);
    lowerBound = std::max(lowerBound, choice.lowerBound);
    isPlanned = costs.planMoves(graph, choice, replacements);
    if (!isPlanned && isExact && costs.getBudget() > 0)
      continue;
    if (!isPlanned)
      choice =
          solve(getOnly(choice.domains, space, [&](unsigned node) -> auto & {
            return choice.get(node);
          }));
    if (!best || !(best->cost < choice.cost))
      best = std::move(choice);
    if (costs.getBudget() == 0 || !(lowerBound < best->cost))
      break;
  }
  best->lowerBound = std::min(lowerBound, best->cost);
  return std::move(*best);
}

Search::Attempt Search::chooseByKnownCosts(const Domains &candidates) {
  {
    // With larger tables, the search isn't exact.
    CostProblem problem(graph, candidates, space, costs, options.maxEntries);
    if (options.strategy == PropagationStrategy::Greedy)
      return {problem.solveGreedily(), /*isExact=*/false};
    if (!problem.isSharingCut())
      if (auto choice = problem.solveExactly(options.maxEntries))
        return {std::move(*choice), /*isExact=*/true};
  }
  return {chooseBounded(candidates), /*isExact=*/false};
}

/// Solves a problem that is too large to be solved exactly. The result comes
/// with a lower bound; it may be exact if few candidates are left.
Choice Search::chooseBounded(const Domains &candidates) {
  // A quick search makes most of the moves that the full search will make, so
  // it plans them first.
  std::optional<CostProblem> problem;
  bool isPlanned = false;
  for (bool isFirst = true; !isPlanned; isFirst = false) {
    problem.emplace(graph, candidates, space, costs, /*maxCopyEntries=*/0);
    isPlanned = costs.planMoves(graph, problem->solveGreedily(),
                                isFirst ? kNone : candidates);
    if (costs.getBudget() == 0)
      break;
  }
  Pruned pruned = prune(graph, space, costs, *problem);
  problem.reset();
  bool isSharingCut;
  Choice choice = solve(pruned.domains, &isSharingCut);
  // A shared move for which the problem has no copy may be counted twice.
  CommunicationCost bound = pruned.lowerBound;
  if (!isSharingCut)
    bound = std::max(choice.lowerBound, bound);
  if (bound < choice.cost && !pruned.choice.empty()) {
    // The known choice may be better.
    Choice known =
        solve(getOnly(pruned.domains, space, [&](unsigned node) -> auto & {
          return *pruned.choice[node];
        }));
    if (known.cost < choice.cost)
      choice = std::move(known);
  }
  choice.lowerBound = bound;
  return choice;
}

/// Solves the problem of `domains`, exactly or with a bound.
Choice Search::solve(Domains domains, bool *isSharingCut) {
  CostProblem problem(graph, std::move(domains), space, costs, kMaxCopyEntries);
  if (isSharingCut)
    *isSharingCut = problem.isSharingCut();
  return problem.solve(options.maxEntries);
}
