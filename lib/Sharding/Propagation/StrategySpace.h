//===- StrategySpace.h - Rules, placements and domains ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model repeats the same op many times. Rules, candidates and strategies are
// therefore computed once for all ops that are alike, and referred to by
// number.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_STRATEGYSPACE_H
#define TP_LIB_SHARDING_PROPAGATION_STRATEGYSPACE_H

#include "tp/Sharding/Propagation/OpClasses.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "tp/Sharding/Strategies.h"
#include "tp/Support/ListInterner.h"
#include "llvm/ADT/BitVector.h"
#include <bitset>
#include <deque>
#include <map>
#include <memory>

namespace mlir::tp::propagation {

/// The effect of one mesh dimension on a tensor: it splits a dimension, or the
/// value is Partial over it.
struct State {
  AxisRefAttr axis;
  std::optional<ReductionKind> partial;
  unsigned dim = 0;
  SmallVector<int64_t, 0> segments;

  friend bool operator<(const State &a, const State &b);
};

/// The most states that can spread; states found after these don't.
constexpr size_t kMaxStates = 256;
using StateSet = std::bitset<kMaxStates>;
/// A set's number; the empty set's is 0.
using StateSetId = unsigned;

/// The strategies of ops that are alike. For each operand and result, the
/// number of its column: a list with its placement by each strategy.
struct Domain {
  std::vector<Strategy> strategies;
  SmallVector<unsigned, 3> operands;
  SmallVector<unsigned, 1> results;
};

/// The states that an op's tensors have after spreading, and the choices that
/// spread them.
struct Spread {
  SmallVector<StateSetId, 4> operands, results;
  std::vector<SplitChoice> choices;
  /// The strategies of these choices, computed on demand.
  mutable const Domain *domain = nullptr;
  /// Whether nothing spreads further from these states, computed on demand.
  mutable std::optional<bool> isSettled;
};

class StrategySpace {
public:
  StrategySpace(MeshOp mesh, RedistributionOptions redistributions)
      : mesh(mesh), planner(mesh, redistributions) {
    addSet({});
  }

  /// The planner, which knows the costs of redistributions.
  RedistributionPlanner &getPlanner() { return planner; }

  /// The number of the op's rule; equal rules have the same number.
  unsigned getRule(ShardingRuleOpInterface op);
  /// Like getRule, but nullopt unless `op` has a rule, has no regions, isn't in
  /// destination style, and takes and gives only static tensors.
  std::optional<unsigned> getPlainRule(Operation *op);
  /// The rule of a node that passes a tensor on; with `isLinear`, it also
  /// passes on a Partial.
  unsigned getIdentityRule(RankedTensorType type, bool isLinear = true);
  const ShardingRule &getRule(unsigned rule) const { return *rules[rule].rule; }

  /// The states of `sharding`, which the program mentions. From now on, its
  /// states and its mesh dimensions (or the mentioned parts of them) are in
  /// use.
  StateSetId getStates(ShardingAttr sharding);
  StateSetId unite(StateSetId a, StateSetId b);
  /// The states of `set` that aren't about mesh dimensions in `over`.
  StateSetId without(StateSetId set, AxisListAttr over);

  /// Whether a state of `set` is about `axis`'s mesh dimension.
  bool isAbout(StateSetId set, AxisRefAttr axis) const;

  const Spread &spread(unsigned rule, ArrayRef<StateSetId> operands,
                       ArrayRef<StateSetId> results);
  /// The same for a list of the rule, the `numOperands` sets of the operands,
  /// and the sets of the results.
  const Spread &spread(ArrayRef<Word> list, size_t numOperands);
  /// Whether nothing spreads further from the states of `spread`.
  bool isSettled(unsigned rule, const Spread &spread);
  /// Whether the program mentions `axis`'s mesh dimension.
  bool isInUse(AxisRefAttr axis) const {
    return llvm::any_of(states, [&](const State &state) {
      return state.axis.getName() == axis.getName();
    });
  }
  /// All choices over whole mesh dimensions (getAllChoices), and over the parts
  /// of them that the program mentions (getPartChoices).
  ArrayRef<SplitChoice> getAllChoices(unsigned rule);
  std::vector<SplitChoice> getPartChoices(unsigned rule) const;

  /// The strategies of `rule` made of `choices`, after `change`, that `filter`
  /// accepts. `key` identifies `filter` and `change`. With `reorders`, mesh
  /// dimensions nest in any order. Empty if there are more than `limit`
  /// strategies.
  const Domain *getDomain(unsigned rule,
                          const std::vector<SplitChoice> &choices,
                          const void *key = nullptr,
                          function_ref<bool(const Strategy &)> filter = {},
                          function_ref<void(Strategy &)> change = {},
                          bool reorders = false, size_t limit = ~size_t(0));
  /// All strategies of the choices of `spread`.
  const Domain *getDomain(unsigned rule, const Spread &spread) {
    if (!spread.domain)
      spread.domain = getDomain(rule, spread.choices);
    return spread.domain;
  }
  /// A domain of one strategy, which requires `operands` and produces
  /// `results`.
  const Domain *getFixedDomain(ArrayRef<ShardingAttr> operands,
                               ArrayRef<ShardingAttr> results);
  /// The strategies of `domain` that are set in `kept`.
  const Domain *getPart(const Domain *domain, const llvm::BitVector &kept);

  unsigned addColumn(ArrayRef<ShardingAttr> placements);
  ArrayRef<ShardingAttr> getColumn(unsigned column) const {
    return columns[column].placements;
  }
  /// The distinct placements of a column: many strategies place a tensor alike.
  ArrayRef<ShardingAttr> getDistinct(unsigned column) const {
    return columns[column].distinct;
  }
  /// For each placement of a column, its index among the distinct ones.
  ArrayRef<unsigned> getIndices(unsigned column) const {
    return columns[column].indices;
  }

private:
  struct Rule {
    std::unique_ptr<ShardingRule> rule;
    /// Bytes of an element of the first tensor.
    int64_t width;
    /// Whether it only passes values on and computes nothing.
    bool isIdentity = false;
    /// The states that each choice alone gives the op's tensors.
    std::vector<std::pair<SplitChoice, SmallVector<StateSetId, 4>>> effects =
        {};
    /// Computed on demand.
    std::optional<std::vector<SplitChoice>> allChoices = std::nullopt;
  };
  struct Column {
    std::vector<ShardingAttr> placements, distinct;
    std::vector<unsigned> indices;
  };
  using ChoiceKey = std::vector<
      std::tuple<const void *, bool, unsigned, SmallVector<int64_t, 0>>>;

  unsigned addRule(ShardingRule rule, int64_t width, bool isIdentity = false);
  unsigned addRule(ShardingRuleOpInterface op);
  unsigned getClass(Operation *op);
  unsigned getState(const State &state);
  StateSetId addSet(const StateSet &set);
  StateSetId addStates(ShardingAttr sharding);
  std::vector<SplitChoice> getChoices(unsigned rule,
                                      ArrayRef<AxisRefAttr> axes) const;
  /// The states that `choice` alone gives the operands, then the results; empty
  /// if the choice is impossible.
  ArrayRef<StateSetId> getEffect(unsigned rule, const SplitChoice &choice);
  void collectChoices(const ShardingRule &rule, bool isResult, unsigned tensor,
                      const State &state, StateSetId own,
                      ArrayRef<StateSetId> operands,
                      std::vector<SplitChoice> &choices);
  /// The parts of the mesh dimension of `state` that split the factors of
  /// `dim`, for every combination of the other states of `own` that may be
  /// major to it.
  SmallVector<AxisRefAttr> getParts(const ShardingRule &rule,
                                    ArrayRef<unsigned> dim, const State &state,
                                    StateSetId own);

  MeshOp mesh;
  RedistributionPlanner planner;
  std::vector<Rule> rules;
  std::map<std::vector<int64_t>, unsigned> rulesByContent;
  OpClasses classes;
  std::vector<std::optional<unsigned>> plainRules, rulesByClass;
  std::vector<State> states;
  std::map<State, unsigned> statesById;
  /// Parts of mesh dimensions that the program mentions.
  SmallVector<AxisRefAttr> mentionedParts;
  /// Whether a placement nests mesh dimensions in another order than the
  /// mesh's.
  bool anyOrder = false;
  ListInterner setNumbers;
  std::vector<StateSet> sets;
  DenseMap<std::pair<StateSetId, StateSetId>, StateSetId> unions;
  DenseMap<ShardingAttr, StateSetId> statesOf;
  /// Indexed by rule and sets.
  ListInterner spreadNumbers;
  std::deque<Spread> spreads;
  std::map<std::tuple<unsigned, ChoiceKey, const void *, bool, size_t>,
           std::unique_ptr<Domain>>
      domains;
  /// Indexed by the shardings that they require and produce.
  ListInterner fixedNumbers;
  std::deque<Domain> fixedDomains;
  DenseMap<std::pair<const Domain *, llvm::BitVector>, std::unique_ptr<Domain>>
      parts;
  ListInterner columnNumbers;
  std::deque<Column> columns;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_STRATEGYSPACE_H
