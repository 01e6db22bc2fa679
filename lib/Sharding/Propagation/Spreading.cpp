//===- Spreading.cpp - Propagation of states and their strategies ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PropagationGraph.h"
#include "llvm/ADT/IntEqClasses.h"
#include <deque>
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// An op with more strategies than this considers only those that spread to it.
constexpr size_t kMaxExhaustive = 512;
/// The limit for strategies in which mesh dimensions nest in any order or are
/// split into parts, and the largest program, in ops, that considers them.
/// Searches take long with many of them.
constexpr size_t kMaxNested = 128;
constexpr unsigned kMaxNestedOps = 32;

//===----------------------------------------------------------------------===//
// Spreading
//===----------------------------------------------------------------------===//

static int64_t getPriority(ConstraintOp op) { return op.getPriority(); }

SmallVector<int64_t> Graph::getPriorities() const {
  llvm::SmallSetVector<int64_t, 4> priorities;
  for (const Node &node : nodes)
    if (node.kind == Node::Constraint)
      priorities.insert(getPriority(cast<ConstraintOp>(node.op)));
  if (priorities.empty())
    priorities.insert(0);
  SmallVector<int64_t> sorted = priorities.takeVector();
  llvm::sort(sorted);
  return sorted;
}

SmallVector<StateSetId, 4> Graph::getStates(const Node &node,
                                            ArrayRef<unsigned> of) const {
  auto getOne = [&](unsigned value) {
    return value == kNoValue ? StateSetId() : states[value];
  };
  if (node.op)
    return llvm::map_to_vector<4>(of, getOne);
  StateSetId all = 0;
  for (unsigned value : of)
    all = space.unite(all, getOne(value));
  return {all};
}

const Spread &Graph::getSpread(const Node &node) const {
  if (!node.op)
    return space.spread(node.rule, getStates(node, node.operands),
                        getStates(node, node.results));
  WordList key = {node.rule};
  for (unsigned value : node.operands)
    key.push_back(value == kNoValue ? 0 : states[value]);
  for (unsigned value : node.results)
    key.push_back(value == kNoValue ? 0 : states[value]);
  return space.spread(key, node.operands.size());
}

bool Graph::spreadNode(const Node &node, int64_t priority,
                       SmallVectorImpl<unsigned> &changed) {
  bool isSettled = false;
  auto add = [&](unsigned value, StateSetId set) {
    if (value == kNoValue || states[value] == set)
      return;
    StateSetId both = space.unite(states[value], set);
    if (states[value] == both)
      return;
    states[value] = both;
    changed.push_back(value);
  };
  auto addAll = [&](ArrayRef<unsigned> to, StateSetId set) {
    for (unsigned value : to)
      add(value, set);
  };
  auto spreadByRule = [&]() {
    const Spread &spread = getSpread(node);
    auto addEach = [&](ArrayRef<unsigned> to, ArrayRef<StateSetId> sets) {
      for (auto [i, value] : llvm::enumerate(to)) {
        StateSetId set = sets[std::min(i, sets.size() - 1)];
        add(value, set);
        isSettled &= value == kNoValue || states[value] == set;
      }
    };
    isSettled = space.isSettled(node.rule, spread);
    addEach(node.operands, spread.operands);
    addEach(node.results, spread.results);
  };
  switch (node.kind) {
  case Node::Fixed:
    if (node.required)
      addAll(node.operands, space.getStates(node.required));
    if (node.produced)
      addAll(node.results, space.getStates(node.produced));
    isSettled = true;
    break;
  case Node::Over: {
    AxisListAttr over = cast<RedistributeOp>(node.op).getOverAttr();
    StateSetId target = space.getStates(node.produced);
    add(node.results[0],
        space.unite(target, space.without(states[node.operands[0]], over)));
    add(node.operands[0],
        space.unite(target, space.without(states[node.results[0]], over)));
    break;
  }
  case Node::Constraint: {
    auto constraint = cast<ConstraintOp>(node.op);
    if (getPriority(constraint) > priority) {
      spreadByRule();
      break;
    }
    StateSetId target = space.getStates(node.produced);
    add(node.operands[0], target);
    add(node.results[0], target);
    if (!constraint.getOpen().empty())
      spreadByRule();
    isSettled = false;
    break;
  }
  case Node::Barrier: {
    auto barrier = cast<PropagationBarrierOp>(node.op);
    if (!barrier.blocksForward())
      add(node.results[0], states[node.operands[0]]);
    if (!barrier.blocksBackward())
      add(node.operands[0], states[node.results[0]]);
    break;
  }
  case Node::Compute:
    spreadByRule();
    break;
  }
  return isSettled;
}

void Graph::seedSegments() {
  // By the tensor that is cut and its dimension: where pieces begin or end.
  std::map<std::pair<unsigned, size_t>, std::set<int64_t>> cuts;
  for (const Node &node : nodes) {
    if (node.kind != Node::Compute || !node.op)
      continue;
    const ShardingRule &rule = space.getRule(node.rule);
    for (const Window &window : rule.windows) {
      if (!window.isResult)
        continue;
      const DimFactors &piece = rule.results[window.tensor][window.dim];
      for (auto [operand, tensor] : llvm::zip(node.operands, rule.operands))
        for (auto [dim, factors] : llvm::enumerate(tensor))
          if (operand != kNoValue && factors == piece)
            cuts[{operand, dim}].insert(
                {window.start, window.start + window.size});
    }
  }
  MLIRContext *context = mesh.getContext();
  auto meshName = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  for (auto &[place, ends] : cuts) {
    auto [value, dim] = place;
    RankedTensorType type = values[value].type;
    ends.insert(type.getDimSize(dim));
    SmallVector<int64_t> segments;
    int64_t begin = 0;
    for (int64_t end : ends)
      if (end > begin) {
        segments.push_back(end - begin);
        begin = end;
      }
    if (segments.size() < 2)
      continue;
    for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
      if (llvm::any_of(segments, [&](int64_t segment) {
            return segment % mesh.getAxisSizes()[i] != 0;
          }))
        continue;
      SmallVector<AxisListAttr> dims(type.getRank(),
                                     AxisListAttr::get(context, {}));
      dims[dim] = AxisListAttr::get(
          context, AxisRefAttr::get(context, mesh.getAxisName(i)), segments);
      states[value] = space.unite(
          states[value],
          space.getStates(ShardingAttr::get(context, meshName, dims, {})));
    }
  }
}

void Graph::spread(int64_t priority, bool seedsSegments) {
  states.assign(values.size(), {});
  if (seedsSegments)
    seedSegments();
  std::deque<unsigned> worklist;
  std::vector<char> isQueued(nodes.size(), true);
  SmallVector<unsigned> changed;
  for (unsigned node = 0; node < nodes.size(); ++node)
    worklist.push_back(node);
  auto enqueue = [&](unsigned node) {
    if (!isQueued[node]) {
      isQueued[node] = true;
      worklist.push_back(node);
    }
  };
  while (!worklist.empty()) {
    unsigned node = worklist.front();
    worklist.pop_front();
    changed.clear();
    bool isSettled = spreadNode(nodes[node], priority, changed);
    // A settled node needn't react to its own changes.
    isQueued[node] = isSettled;
    for (unsigned value : changed) {
      enqueue(values[value].node);
      for (const Use &use : values[value].uses)
        enqueue(use.node);
    }
    // A fixed node does the same at each visit, so it stays marked and is never
    // queued again.
    if (isSettled && nodes[node].kind != Node::Fixed)
      isQueued[node] = false;
  }
  findBehindBarriers();
}

void Graph::findBehindBarriers() {
  behindBarriers.clear();
  auto isBarrier = [&](unsigned node) {
    return nodes[node].kind == Node::Barrier;
  };
  if (llvm::none_of(
          nodes, [](const Node &node) { return node.kind == Node::Barrier; }))
    return;
  llvm::IntEqClasses sides(nodes.size());
  for (const FlowValue &value : values)
    for (const Use &use : value.uses)
      if (!isBarrier(value.node) && !isBarrier(use.node))
        sides.join(value.node, use.node);
  sides.compress();
  llvm::DenseMap<unsigned, StateSetId> bySide;
  for (const FlowValue &value : values)
    for (const Use &use : value.uses) {
      if (isBarrier(use.node))
        bySide[sides[value.node]];
      if (isBarrier(value.node))
        bySide[sides[use.node]];
    }
  for (auto [index, value] : llvm::enumerate(values))
    if (auto it = bySide.find(sides[value.node]); it != bySide.end())
      it->second = space.unite(it->second, states[index]);
  for (unsigned node = 0; node < nodes.size(); ++node)
    if (auto it = bySide.find(sides[node]); it != bySide.end())
      behindBarriers[node] = it->second;
}

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

/// Whether `given` equals `wanted`, except that the dimensions `open` may be
/// split further.
static bool refines(ShardingAttr given, ShardingAttr wanted,
                    ArrayRef<int64_t> open) {
  if (given.getPartial() != wanted.getPartial())
    return false;
  for (auto [dim, have, want] :
       llvm::enumerate(given.getDims(), wanted.getDims())) {
    bool isOpen = llvm::is_contained(open, static_cast<int64_t>(dim));
    if (!isOpen
            ? have != want
            : have.size() < want.size() ||
                  have.getAxes().take_front(want.size()) != want.getAxes() ||
                  (!want.empty() && have.getSegments() != want.getSegments()))
      return false;
  }
  return true;
}

const Domain *Graph::getDomain(const Node &node, bool isExhaustive,
                               int64_t priority, const Strategy *before) const {
  return keepBatch(node, getAnyDomain(node, isExhaustive, priority, before));
}

bool Graph::mayBeGiven(const Node &node, const SplitChoice &choice) const {
  if (!choice.isLinear)
    return true;
  auto isWhole = [&](unsigned operand) {
    if (operand >= node.operands.size() || node.operands[operand] == kNoValue)
      return false;
    const Node &source = nodes[values[node.operands[operand]].node];
    return source.kind == Node::Fixed && source.produced &&
           llvm::none_of(source.produced.getPartial(),
                         [&](PartialAttr partial) {
                           return partial.getAxis().overlaps(choice.axis);
                         });
  };
  return llvm::none_of(space.getRule(node.rule).linearSets[choice.index],
                       isWhole);
}

const Domain *Graph::getOverDomain(const Node &node) const {
  // Its own redistribution costs the same as any other.
  auto redistribute = cast<RedistributeOp>(node.op);
  return space.getDomain(
      node.rule, getSpread(node).choices, node.op,
      [&](const Strategy &s) { return !s.cost.isInfinite(); },
      [&](Strategy &strategy) {
        ShardingAttr from = strategy.operands[0];
        strategy.results[0] = redistribute.getTarget(from);
        strategy.cost += space.getPlanner().getCost(from, strategy.results[0],
                                                    redistribute.getType());
      });
}

const Domain *Graph::getConstraintDomain(const Node &node) const {
  ArrayRef<int64_t> open = cast<ConstraintOp>(node.op).getOpen();
  if (open.empty())
    return space.getFixedDomain(node.required, node.produced);
  return space.getDomain(node.rule, getSpread(node).choices, node.op,
                         [&](const Strategy &strategy) {
                           return refines(strategy.results[0], node.produced,
                                          open);
                         });
}

/// Adds the choices in `more` that aren't in `choices` yet.
static void addNew(ArrayRef<SplitChoice> more,
                   std::vector<SplitChoice> &choices) {
  for (const SplitChoice &choice : more)
    if (!llvm::is_contained(choices, choice))
      choices.push_back(choice);
}

/// Adds the choices that `strategy`, an earlier decision, consists of: they
/// stand, whether or not they still spread.
static void addChoices(const Strategy *strategy,
                       std::vector<SplitChoice> &choices) {
  auto add = [&](SplitChoice choice) {
    if (!llvm::is_contained(choices, choice))
      choices.push_back(std::move(choice));
  };
  if (!strategy)
    return;
  const auto &split = strategy->split;
  for (auto [factor, axes] : llvm::enumerate(split.factorAxes))
    for (AxisRefAttr axis : axes)
      add({axis, /*isLinear=*/false, static_cast<unsigned>(factor),
           llvm::to_vector_of<int64_t, 0>(split.factorSegments[factor])});
  for (auto [set, axis] : split.linearAxes)
    add({axis, /*isLinear=*/true, set, {}});
}

const Domain *Graph::getSpreadDomain(const Node &node, const Spread &spread,
                                     const Strategy *before) const {
  std::vector<SplitChoice> more = getAlternativeChoices(node);
  if (!before && more.empty())
    return space.getDomain(node.rule, spread);
  std::vector<SplitChoice> choices = spread.choices;
  addChoices(before, choices);
  bool hasAlternatives = !more.empty();
  addNew(more, choices);
  // The order in which the mesh's dimensions split an alternative decides
  // whether their ranks exchange it among each other.
  return space.getDomain(
      node.rule, choices, before,
      [&](const Strategy &strategy) {
        return !before || strategy.extends(*before);
      },
      {}, /*reorders=*/hasAlternatives);
}

/// All splits over all mesh dimensions, even splits that didn't spread here: a
/// value that can't stay split as it is may be split in another way. In small
/// programs, mesh dimensions also nest in any order, and so do the parts of
/// them that the program mentions, unless there are too many strategies.
const Domain *Graph::getExhaustiveDomain(const Node &node,
                                         const Strategy *before) const {
  std::vector<SplitChoice> choices = getSpread(node).choices;
  addChoices(before, choices);
  auto it = behindBarriers.find(&node - nodes.data());
  const Domain *largest = nullptr;
  // A program's arguments and results aren't split over mesh dimensions that
  // the program doesn't mention.
  bool isEnd = !node.op && (node.operands.empty() || node.results.empty());
  auto add = [&](ArrayRef<SplitChoice> more) {
    for (const SplitChoice &choice : more)
      if (!llvm::is_contained(choices, choice) && mayBeGiven(node, choice) &&
          (!isEnd || space.isInUse(choice.axis)) &&
          (it == behindBarriers.end() ||
           space.isAbout(it->second, choice.axis)))
        choices.push_back(choice);
  };
  auto enlarge = [&](bool reorders) {
    std::vector<SplitChoice> kept = choices;
    keepBatch(node, kept);
    const Domain *domain = space.getDomain(
        node.rule, kept, before,
        [&](const Strategy &s) { return !before || s.extends(*before); }, {},
        reorders, reorders ? kMaxNested : kMaxExhaustive);
    if (!domain->strategies.empty())
      largest = domain;
    return !domain->strategies.empty();
  };
  std::vector<SplitChoice> alternatives = getAlternativeChoices(node);
  addNew(alternatives, choices);
  add(space.getAllChoices(node.rule));
  if (enlarge(/*reorders=*/false) &&
      (numOps <= kMaxNestedOps || !alternatives.empty()) &&
      enlarge(/*reorders=*/true)) {
    add(space.getPartChoices(node.rule));
    enlarge(/*reorders=*/true);
  }
  return largest ? largest : getSpreadDomain(node, getSpread(node), before);
}

const Domain *Graph::getAnyDomain(const Node &node, bool isExhaustive,
                                  int64_t priority,
                                  const Strategy *before) const {
  // Where no strategy is possible, the fixed placements are the only candidate,
  // and may be rejected later. Strategies never split unevenly by parts of a
  // mesh dimension.
  auto orFixed = [&](const Domain *domain) {
    return domain->strategies.empty()
               ? space.getFixedDomain(node.required, node.produced)
               : domain;
  };
  switch (node.kind) {
  case Node::Fixed: {
    SmallVector<ShardingAttr> required, produced;
    required.assign(node.operands.size(), node.required);
    produced.assign(node.results.size(), node.produced);
    return space.getFixedDomain(required, produced);
  }
  case Node::Over:
    return orFixed(getOverDomain(node));
  case Node::Constraint:
    if (getPriority(cast<ConstraintOp>(node.op)) > priority)
      break;
    return orFixed(getConstraintDomain(node));
  case Node::Barrier: { // only what spread to the result
    SmallVector<StateSetId, 4> results = getStates(node, node.results);
    return getSpreadDomain(node, space.spread(node.rule, results, results),
                           before);
  }
  case Node::Compute:
    break;
  }
  return isExhaustive ? getExhaustiveDomain(node, before)
                      : getSpreadDomain(node, getSpread(node), before);
}
