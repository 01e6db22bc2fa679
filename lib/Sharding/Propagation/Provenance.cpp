//===- Provenance.cpp - Chains from fixed placements to values ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Provenance.h"
#include "tp/Sharding/SplitInference.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

Provenance::Provenance(
    MeshOp mesh, const Graph &graph,
    function_ref<ShardingAttr(const FlowValue &)> getCurrentSharding,
    function_ref<ShardingAttr(const FlowValue &, const Use &)>
        getRequiredSharding)
    : mesh(mesh), graph(graph) {
  for (auto [index, value] : llvm::enumerate(graph.values))
    sites.push_back({value.node, static_cast<unsigned>(index), false,
                     getCurrentSharding(value)});
  for (const Node &node : graph.nodes)
    taken.emplace_back(node.operands.size(), kNone);
  for (auto [index, value] : llvm::enumerate(graph.values)) {
    firstUse.push_back(sites.size());
    for (const Use &use : value.uses) {
      taken[use.node][use.operand] = sites.size();
      sites.push_back({use.node, static_cast<unsigned>(index), true,
                       getRequiredSharding(value, use)});
    }
  }
  for (unsigned axis = 0; axis < mesh.getNumAxes(); ++axis)
    search(axis);
}

ArrayRef<std::string> Provenance::print(ShardingAttr sharding) {
  auto [it, inserted] = printed.try_emplace(sharding);
  if (inserted)
    it->second = getPlacements(sharding, mesh);
  return it->second;
}

//===----------------------------------------------------------------------===//
// What is fixed
//===----------------------------------------------------------------------===//

static bool mentions(AxisListAttr axes, StringRef name) {
  return llvm::any_of(axes,
                      [&](AxisRefAttr axis) { return axis.getName() == name; });
}

std::optional<PlacementSource> Provenance::getSource(const Node &node,
                                                     unsigned axis) const {
  StringRef name = MeshOp(mesh).getAxisName(axis);
  func::FuncOp function = graph.instances[node.instance].function;
  switch (node.kind) {
  case Node::Over:
    if (!mentions(cast<RedistributeOp>(node.op).getOverAttr(), name))
      return std::nullopt;
    return PlacementSource{PlacementSource::Op, function, 0, node.op};
  case Node::Constraint: {
    bool isFixed = cast<ConstraintOp>(node.op).getOpen().empty() ||
                   node.produced.getShardedDim(name) ||
                   node.produced.getPartialKind(name);
    if (!isFixed)
      return std::nullopt;
    return PlacementSource{PlacementSource::Op, function, 0, node.op};
  }
  case Node::Fixed:
    break;
  case Node::Barrier:
  case Node::Compute:
    return std::nullopt;
  }
  // Ops of the tp dialect, and ops that run on each rank's own block.
  if (node.op && !node.op->hasAttr(kShardingAttr) &&
      !node.op->hasAttr(kShardingsAttr))
    return PlacementSource{PlacementSource::Op, function, 0, node.op};
  if (node.op)
    return PlacementSource{PlacementSource::Attribute, function, 0, node.op};
  // An argument, a result, or a fixed value of a region op or of another op.
  if (!node.results.empty() && node.results.front() < graph.values.size()) {
    Value value = graph.values[node.results.front()].value;
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getOwner()->getParentOp() ==
                        graph.instances[node.instance].function) {
      unsigned index = argument.getArgNumber();
      return PlacementSource{PlacementSource::Argument, function, index,
                             nullptr,
                             !function.getArgAttr(index, kShardingAttr)};
    }
    for (unsigned result : node.results)
      if (auto fixed = dyn_cast<OpResult>(graph.values[result].value))
        return PlacementSource{PlacementSource::Attribute, function, 0,
                               fixed.getOwner()};
    return PlacementSource{PlacementSource::Attribute, function, 0,
                           value.getParentBlock()->getParentOp()};
  }
  const FlowValue &value = graph.values[node.operands.front()];
  for (const Use &use : value.uses) {
    if (&graph.nodes[use.node] != &node || !use.at)
      continue;
    Operation *owner = use.at->getOwner();
    if (!isa<func::ReturnOp>(owner))
      return PlacementSource{PlacementSource::Body, function, 0, owner};
    unsigned index = use.at->getOperandNumber();
    return PlacementSource{PlacementSource::Result, function, index, nullptr,
                           !function.getResultAttr(index, kShardingAttr)};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

/// How readily the search goes from one site of `node` to another. A split op
/// determines its tensors. Otherwise a step from a result is preferred to one
/// from an operand to a result, and that to one between operands. Nullopt if
/// the one site doesn't determine the other.
std::optional<Provenance::Reluctance>
Provenance::getStep(const Node &node, const Site &from, const Site &to,
                    unsigned axis, bool isSplit) {
  if (node.kind == Node::Barrier) {
    auto barrier = cast<PropagationBarrierOp>(node.op);
    if (from.isUse ? barrier.blocksForward() : barrier.blocksBackward())
      return std::nullopt;
  }
  // A node that only passes values on places all of them alike.
  if (node.kind != Node::Compute || !node.op) {
    if (print(from.sharding)[axis] != print(to.sharding)[axis])
      return std::nullopt;
    return Reluctance::None;
  }
  // If the op is split, a whole tensor is whole because another one is split,
  // so it determines nothing.
  if (isSplit) {
    if (print(from.sharding)[axis] == "Replicate")
      return std::nullopt;
    return Reluctance::None;
  }
  if (!from.isUse)
    return Reluctance::None;
  return to.isUse ? Reluctance::Much : Reluctance::Some;
}

void Provenance::search(unsigned axis) {
  auto &arrival = arrivals.emplace_back(sites.size());
  struct Pending {
    unsigned site, from;
    bool throughNode;
  };
  std::deque<Pending> queues[3];
  auto push = [&](unsigned site, unsigned from, bool throughNode,
                  Reluctance reluctance) {
    if (arrival[site].from == kNone)
      queues[static_cast<unsigned>(reluctance)].push_back(
          {site, from, throughNode});
  };
  auto forEachSite = [&](unsigned node, auto visit) {
    for (unsigned site : taken[node])
      if (site != kNone)
        visit(site);
    for (unsigned value : graph.nodes[node].results)
      if (value < graph.values.size())
        visit(value);
  };
  // Written placements come before defaults.
  std::vector<char> isSource(graph.nodes.size(), false);
  for (bool isDefault : {false, true})
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      auto source = getSource(node, axis);
      if (!source || source->isDefault != isDefault)
        continue;
      isSource[index] = true;
      forEachSite(index, [&](unsigned site) {
        // A redistribution over some mesh dimensions fixes only sites that
        // already have its target.
        if (node.kind != Node::Over ||
            print(sites[site].sharding)[axis] == print(node.produced)[axis])
          push(site, site, false, Reluctance::None);
      });
    }
  std::vector<char> isDone(graph.nodes.size(), false);
  while (true) {
    auto *queue = llvm::find_if(
        queues, [](const auto &pending) { return !pending.empty(); });
    if (queue == std::end(queues))
      return;
    Pending next = queue->front();
    queue->pop_front();
    unsigned at = next.site;
    if (arrival[at].from != kNone)
      continue;
    arrival[at] = {next.from, next.throughNode};
    arrival[at].source = next.from == at ? at : arrival[next.from].source;
    arrival[at].numSteps = arrival[next.from].numSteps + next.throughNode;
    const Site &site = sites[at];
    auto flow = [&](unsigned other, Reluctance reluctance) {
      if (print(site.sharding)[axis] == print(sites[other].sharding)[axis])
        push(other, at, false, reluctance);
    };
    if (site.isUse)
      flow(site.value, Reluctance::Some);
    else
      for (unsigned i = 0; i < graph.values[site.value].uses.size(); ++i)
        flow(firstUse[site.value] + i, Reluctance::None);
    const Node &node = graph.nodes[site.node];
    if (isSource[site.node] || node.kind == Node::Fixed || isDone[site.node])
      continue;
    bool isSplit = false;
    forEachSite(site.node, [&](unsigned other) {
      isSplit |= print(sites[other].sharding)[axis] != "Replicate";
    });
    // The first site from which the search enters a split op determines all of
    // the op's tensors.
    bool passed = false;
    forEachSite(site.node, [&](unsigned other) {
      if (other == at)
        return;
      if (auto reluctance = getStep(node, site, sites[other], axis, isSplit)) {
        push(other, at, true, *reluctance);
        passed = true;
      }
    });
    isDone[site.node] = passed && isSplit && node.kind == Node::Compute;
  }
}

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

SmallVector<ShardingAttr> Provenance::getOperands(unsigned node) const {
  SmallVector<ShardingAttr> shardings;
  auto ref = FlatSymbolRefAttr::get(MeshOp(mesh).getSymNameAttr());
  for (unsigned site : taken[node])
    shardings.push_back(site == kNone ? ShardingAttr::getReplicated(ref, 0)
                                      : sites[site].sharding);
  return shardings;
}

SmallVector<ShardingAttr> Provenance::getResults(unsigned node) const {
  SmallVector<ShardingAttr> shardings;
  auto ref = FlatSymbolRefAttr::get(MeshOp(mesh).getSymNameAttr());
  for (unsigned value : graph.nodes[node].results)
    shardings.push_back(value >= graph.values.size()
                            ? ShardingAttr::getReplicated(ref, 0)
                            : sites[value].sharding);
  return shardings;
}

/// "factor n"; for a rule without names, "dimension 1" of the first tensor that
/// has the factor.
static std::string printFactor(const ShardingRule &rule, unsigned factor) {
  if (factor < rule.names.size())
    return "factor " + rule.names[factor];
  for (const TensorFactors &tensor :
       llvm::concat<const TensorFactors>(rule.results, rule.operands))
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (llvm::is_contained(factors, factor))
        return "dimension " + std::to_string(dim);
  return "factor " + std::to_string(factor);
}

SmallVector<std::string> Provenance::getSplits(Operation *op,
                                               ArrayRef<ShardingAttr> operands,
                                               ArrayRef<ShardingAttr> results) {
  SmallVector<std::string> texts(mesh.getNumAxes());
  auto ruled = dyn_cast_or_null<ShardingRuleOpInterface>(op);
  if (!ruled)
    return texts;
  FailureOr<OpSplit> split = inferSplit(ruled, mesh, 0, operands, results);
  if (failed(split))
    return texts;
  ShardingRule rule = ruled.getShardingRule();
  auto add = [&](AxisRefAttr axis, const std::string &what) {
    std::string &text = texts[*mesh.getAxisIndex(axis.getName())];
    text += (text.empty() ? "" : ", ") + what;
  };
  for (auto [factor, axes] : llvm::enumerate(split->factorAxes))
    for (AxisRefAttr axis : axes)
      add(axis, printFactor(rule, factor));
  for (auto [set, axis] : split->linearAxes)
    add(axis, "linear");
  return texts;
}

StringRef Provenance::getSplit(unsigned node, unsigned axis) {
  auto [it, inserted] = splits.try_emplace(node);
  if (inserted)
    it->second =
        getSplits(graph.nodes[node].op, getOperands(node), getResults(node));
  return it->second[axis];
}

PlacementChain Provenance::trace(unsigned site, unsigned axis) {
  PlacementChain chain;
  chain.axis = axis;
  chain.placement = print(sites[site].sharding)[axis];
  const std::vector<Arrival> &arrival = arrivals[axis];
  if (arrival[site].from == kNone)
    return chain;
  chain.source = getSource(graph.nodes[sites[arrival[site].source].node], axis);
  chain.sourcePlacement = print(sites[arrival[site].source].sharding)[axis];
  for (; arrival[site].from != site; site = arrival[site].from) {
    const Node &node = graph.nodes[sites[site].node];
    // An op that the way passes twice in a row is one step.
    if (!arrival[site].throughNode || !node.op ||
        (!chain.steps.empty() && chain.steps.back().op == node.op))
      continue;
    if (chain.steps.size() == PlacementChain::kMaxSteps) {
      chain.numLeftOut = arrival[site].numSteps;
      break;
    }
    std::string split;
    if (node.kind == Node::Compute)
      split = getSplit(sites[site].node, axis);
    chain.steps.push_back(
        {node.op, std::move(split), print(sites[site].sharding)[axis]});
  }
  std::reverse(chain.steps.begin(), chain.steps.end());
  return chain;
}

PlacementChain Provenance::getChain(unsigned value, unsigned axis) {
  return trace(value, axis);
}

PlacementChain Provenance::getChain(unsigned value, unsigned use,
                                    unsigned axis) {
  return trace(firstUse[value] + use, axis);
}
