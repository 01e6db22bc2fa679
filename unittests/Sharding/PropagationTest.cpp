//===- PropagationTest.cpp - placements of random programs, searched ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For random programs, the placements that the propagation chooses are compared
// with an exhaustive search: op by op, every way to run each op, and every set
// of placements that the values still in use may have been brought to. What the
// choice costs is counted from the IR that it becomes.
//
//===----------------------------------------------------------------------===//

#include "tp/Sharding/Propagation/Propagation.h"
#include "RandomGraph.h"
#include "Sharding/Propagation/PropagationGraph.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "tp/Sharding/SplitInference.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

namespace {

constexpr int64_t kLatencyBytes = 1000;

std::string print(const CommunicationCost &cost) {
  return std::to_string(cost.parameterBytes) + "/" +
         std::to_string(cost.volume) + "/" + std::to_string(cost.bytes) + "/" +
         std::to_string(cost.collectives);
}

/// All but the work, which only decides between equal ones.
CommunicationCost withoutWork(CommunicationCost cost) {
  cost.work = 0;
  return cost;
}

/// The communication that moving a value costs.
CommunicationCost getMoveCost(ShardingAttr from, ShardingAttr to,
                              RankedTensorType type, bool isParameter,
                              RedistributionPlanner &planner, MeshOp mesh) {
  CommunicationCost cost = planner.getCost(from, to, type);
  if (cost.isInfinite())
    return cost;
  cost.volume =
      cost.bytes + kLatencyBytes * mesh.getNumRanks() * cost.collectives;
  cost.work = 0;
  if (isParameter)
    cost.parameterBytes = cost.bytes;
  return cost;
}

/// The communication of an op's own.
CommunicationCost getOwnCost(const ShardingRule &rule, const OpSplit &split,
                             int64_t width) {
  MeshOp mesh = split.mesh;
  auto getLocal = [&](unsigned factor) {
    int64_t ranks = mesh.getAxesSize(split.factorAxes[factor]);
    return (rule.factors[factor].size + ranks - 1) / ranks;
  };
  CommunicationCost cost;
  for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
    int64_t ranks = mesh.getAxesSize(split.factorAxes[factor]);
    if (rule.factors[factor].kind != FactorKind::Collective || ranks == 1)
      continue;
    int64_t elements = 1;
    for (const DimFactors &dim : rule.operands.front())
      for (unsigned other : dim)
        elements *= other == factor ? 1 : getLocal(other);
    int64_t reductions = rule.factors[factor].reductions;
    cost.collectives += reductions;
    cost.bytes += 2 * (ranks - 1) * elements * width * reductions *
                  (mesh.getNumRanks() / ranks);
  }
  cost.volume =
      cost.bytes + kLatencyBytes * mesh.getNumRanks() * cost.collectives;
  return cost;
}

int64_t getWidth(Operation *op) {
  Type type = op->getNumOperands() ? op->getOperand(0).getType()
                                   : op->getResult(0).getType();
  return cast<RankedTensorType>(type).getElementTypeBitWidth() / 8;
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// All ways to run the nodes of a program, and the cheapest of them together.
class Search {
public:
  Search(MeshOp mesh, RedistributionOptions redistributions)
      : mesh(mesh), space(mesh, redistributions), graph(mesh, space) {}

  LogicalResult read(func::FuncOp function);

  enum class Outcome { NothingCheaper, Cheaper, TooLarge };
  /// Whether anything costs less than `limit`.
  Outcome run(const CommunicationCost &limit);

  CommunicationCost cheaper;

private:
  struct Way {
    SmallVector<ShardingAttr> operands, results;
    CommunicationCost cost;
    /// The numbers of the placements.
    SmallVector<unsigned> needs = {}, gives = {};
  };
  /// Every split of every mesh dimension.
  void addAllSplits(const Node &node, std::vector<Way> &ways);
  /// An order in which values are in use for a short while only.
  SmallVector<unsigned> getOrder() const;
  const CommunicationCost &getMove(unsigned value, unsigned from, unsigned to);

  MeshOp mesh;
  StrategySpace space;
  Graph graph;
  std::vector<std::vector<Way>> ways;
  SmallVector<AxisRefAttr> axes;
  SetVector<ShardingAttr> placements;
  DenseMap<std::tuple<unsigned, unsigned, unsigned>, CommunicationCost> moves;
};

LogicalResult Search::read(func::FuncOp function) {
  if (failed(graph.addRoot(function)))
    return failure();
  graph.spread(0);
  for (size_t i = 0; i < mesh.getNumAxes(); ++i)
    axes.push_back(AxisRefAttr::get(mesh.getContext(), mesh.getAxisName(i)));
  for (const Node &node : graph.nodes) {
    auto &own = ways.emplace_back();
    for (const Strategy &strategy :
         graph.getDomain(node, /*isExhaustive=*/true, 0, nullptr)->strategies) {
      CommunicationCost cost = withoutWork(strategy.cost);
      cost.volume =
          cost.bytes + kLatencyBytes * mesh.getNumRanks() * cost.collectives;
      own.push_back({llvm::to_vector_of<ShardingAttr>(strategy.operands),
                     llvm::to_vector_of<ShardingAttr>(strategy.results), cost});
    }
    if (node.kind == Node::Compute && node.op)
      addAllSplits(node, own);
    auto getNumbers = [&](ArrayRef<ShardingAttr> of, size_t count) {
      SmallVector<unsigned> numbers;
      for (size_t i = 0; i < count; ++i) {
        // What passes values on has one placement for all.
        ShardingAttr sharding = of[std::min(i, of.size() - 1)];
        placements.insert(sharding);
        numbers.push_back(llvm::find(placements, sharding) -
                          placements.begin());
      }
      return numbers;
    };
    for (Way &way : own) {
      way.needs = getNumbers(way.operands, node.operands.size());
      way.gives = getNumbers(way.results, node.results.size());
    }
  }
  return success();
}

void Search::addAllSplits(const Node &node, std::vector<Way> &ways) {
  const ShardingRule &rule = space.getRule(node.rule);
  std::vector<OpSplit> splits = {getReplicatedSplit(rule, mesh)};
  for (AxisRefAttr axis : axes)
    for (size_t i = 0, e = splits.size(); i < e; ++i) {
      for (unsigned set = 0; set + rule.numOnce < rule.linearSets.size();
           ++set) {
        OpSplit split = splits[i];
        split.linearAxes.push_back({set, axis});
        splits.push_back(std::move(split));
      }
      for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
        OpSplit split = splits[i];
        if (!canSplit(rule, split, factor, axis))
          continue;
        auto &list = split.factorAxes[factor];
        for (size_t j = 0; j <= list.size(); ++j) {
          OpSplit nested = split;
          auto &own = nested.factorAxes[factor];
          own.insert(own.end() - j, axis);
          splits.push_back(std::move(nested));
        }
      }
    }
  for (const OpSplit &split : splits) {
    Way way;
    for (unsigned i = 0; i < rule.operands.size(); ++i)
      way.operands.push_back(getOperandSharding(rule, split, i));
    for (unsigned i = 0; i < rule.results.size(); ++i)
      way.results.push_back(getResultSharding(rule, split, i));
    if (llvm::is_contained(way.operands, ShardingAttr()) ||
        llvm::is_contained(way.results, ShardingAttr()))
      continue;
    way.cost = getOwnCost(rule, split, getWidth(node.op));
    // Ways that are alike may differ in how the op is split.
    if (llvm::none_of(ways, [&](const Way &other) {
          return other.operands == way.operands && other.results == way.results;
        }))
      ways.push_back(std::move(way));
  }
}

SmallVector<unsigned> Search::getOrder() const {
  SmallVector<unsigned> order;
  std::vector<char> isDone(graph.nodes.size(), false);
  auto add = [&](unsigned node) {
    if (!isDone[node])
      order.push_back(node);
    isDone[node] = true;
  };
  for (unsigned index = 0; index < graph.nodes.size(); ++index) {
    const Node &node = graph.nodes[index];
    // Sources come before their first use, ends behind what they take.
    if (node.operands.empty())
      continue;
    for (unsigned value : node.operands)
      add(graph.values[value].node);
    add(index);
    for (unsigned value : node.results)
      for (const Use &use : graph.values[value].uses)
        if (graph.nodes[use.node].results.empty())
          add(use.node);
  }
  return order;
}

const CommunicationCost &Search::getMove(unsigned value, unsigned from,
                                         unsigned to) {
  auto [it, inserted] = moves.try_emplace({value, from, to});
  if (inserted)
    it->second =
        getMoveCost(placements[from], placements[to], graph.values[value].type,
                    graph.values[value].isParameter, space.getPlanner(), mesh);
  return it->second;
}

Search::Outcome Search::run(const CommunicationCost &limit) {
  constexpr size_t kMaxStates = 50'000;
  SmallVector<unsigned> order = getOrder();
  std::vector<unsigned> lastUse(graph.values.size(), 0);
  for (auto [place, node] : llvm::enumerate(order))
    for (unsigned value : graph.nodes[node].operands)
      lastUse[value] = place;
  // A state has, for each value in use, the placement that it was given, then
  // those that it was brought to at a cost, then kEnd.
  constexpr unsigned kEnd = ~0u;
  using State = std::vector<unsigned>;
  SmallVector<unsigned> live;
  std::map<State, CommunicationCost> states = {{{}, {}}};
  for (auto [place, index] : llvm::enumerate(order)) {
    const Node &node = graph.nodes[index];
    SmallVector<unsigned> liveAfter;
    for (unsigned value : llvm::concat<const unsigned>(live, node.results))
      if (lastUse[value] > place)
        liveAfter.push_back(value);
    std::map<State, CommunicationCost> next;
    std::map<unsigned, std::vector<unsigned>> have;
    for (const auto &[state, before] : states)
      for (const Way &way : ways[index]) {
        have.clear();
        size_t at = 0;
        for (unsigned value : live) {
          auto &list = have[value];
          for (; state[at] != kEnd; ++at)
            list.push_back(state[at]);
          ++at;
        }
        CommunicationCost cost = before + way.cost;
        for (auto [value, want] : llvm::zip_equal(node.operands, way.needs)) {
          auto &list = have[value];
          if (llvm::is_contained(list, want))
            continue;
          const CommunicationCost &move = getMove(value, list[0], want);
          if (move == CommunicationCost())
            continue;
          cost += move;
          list.insert(std::upper_bound(list.begin() + 1, list.end(), want),
                      want);
        }
        if (!(cost < limit))
          continue;
        for (auto [value, gives] : llvm::zip_equal(node.results, way.gives))
          have[value] = {gives};
        State after;
        for (unsigned value : liveAfter) {
          llvm::append_range(after, have[value]);
          after.push_back(kEnd);
        }
        auto [it, inserted] = next.try_emplace(std::move(after), cost);
        if (!inserted)
          it->second = std::min(it->second, cost);
      }
    if (next.size() > kMaxStates)
      return Outcome::TooLarge;
    states = std::move(next);
    live = std::move(liveAfter);
  }
  if (states.empty())
    return Outcome::NothingCheaper;
  cheaper = states.begin()->second;
  return Outcome::Cheaper;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

class PropagationTest : public testing::Test {
protected:
  PropagationTest() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<func::FuncDialect, nn::NNDialect, TPDialect>();
  }

  OwningOpRef<ModuleOp> parse(StringRef text) {
    return parseSourceString<ModuleOp>(text, &context);
  }
  static MeshOp getMesh(ModuleOp module) {
    return *module.getOps<MeshOp>().begin();
  }
  static func::FuncOp getMain(ModuleOp module) {
    return *module.getOps<func::FuncOp>().begin();
  }

  LogicalResult run(ModuleOp module, std::unique_ptr<Pass> pass) {
    PassManager passes(&context);
    passes.addPass(std::move(pass));
    return passes.run(module);
  }

  /// The communication of a program with a placement for every value.
  static FailureOr<CommunicationCost>
  countCost(ModuleOp module, RedistributionOptions redistributions);
  /// The bytes that all ranks receive in a partitioned program.
  static int64_t countReceived(ModuleOp module);

  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream(text) << module;
    return text;
  }

  MLIRContext context;
};

FailureOr<CommunicationCost>
PropagationTest::countCost(ModuleOp module,
                           RedistributionOptions redistributions) {
  MeshOp mesh = getMesh(module);
  RedistributionPlanner planner(mesh, redistributions);
  func::FuncOp function = getMain(module);
  DenseMap<Value, ShardingAttr> placed;
  for (BlockArgument argument : function.getArguments())
    placed[argument] = getArgSharding(function, argument.getArgNumber());
  CommunicationCost sum;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (auto move = dyn_cast<RedistributeOp>(op)) {
      placed[move.getResult()] = move.getSharding();
      sum += getMoveCost(placed.lookup(move.getInput()), move.getSharding(),
                         cast<RankedTensorType>(move.getType()),
                         /*isParameter=*/false, planner, mesh);
      continue;
    }
    auto shardings = getResultShardings(&op);
    for (auto [result, sharding] : llvm::zip_equal(op.getResults(), shardings))
      placed[result] = sharding;
    auto operands = llvm::map_to_vector(op.getOperands(), [&](Value operand) {
      return placed.lookup(operand);
    });
    auto rule = cast<ShardingRuleOpInterface>(op);
    auto split = inferSplit(rule, mesh, 0, operands, shardings);
    if (failed(split))
      return failure();
    sum += getOwnCost(rule.getShardingRule(), *split, getWidth(&op));
  }
  return sum;
}

int64_t PropagationTest::countReceived(ModuleOp module) {
  MeshOp mesh = getMesh(module);
  int64_t bytes = 0;
  module.walk([&](CollectiveOpInterface collective) {
    bytes += llvm::sum_of(getReceivedBytesByRank(collective, mesh));
  });
  return bytes;
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

/// How many programs each of the shards below searches.
unsigned getCount(unsigned count) {
  const char *text = std::getenv("TP_RANDOM_GRAPHS");
  return text ? std::strtoul(text, nullptr, 10) : count;
}

class RandomPropagation : public PropagationTest,
                          public testing::WithParamInterface<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Shards, RandomPropagation, testing::Range(0u, 4u));

TEST_P(RandomPropagation, IsOptimal) {
  unsigned numTooLarge = 0, numInexact = 0, numCheaper = 0, numWithCost = 0,
           numWorseGreedy = 0;
  unsigned count = getCount(120);
  for (unsigned i = 0; i < count + numTooLarge; ++i) {
    unsigned seed = GetParam() + 4 * i;
    std::string text =
        RandomGraph(seed, RandomGraph::getMesh(seed % 4)).get(12);
    SCOPED_TRACE("seed " + std::to_string(seed) + ":\n" + text);
    OwningOpRef<ModuleOp> module = parse(text);
    ASSERT_TRUE(module);
    MeshOp mesh = getMesh(*module);
    PropagationOptions options;
    options.latencyBytes = kLatencyBytes;
    options.redistributions.oneShot = i % 4 != 1;
    options.redistributions.memory = i % 8 == 2;
    auto propagate = [&](const PropagationOptions &options) {
      auto propagation = std::make_unique<Propagation>(mesh, options);
      EXPECT_TRUE(succeeded(propagation->run({getMain(*module)})));
      return propagation;
    };
    auto optimal = propagate(options);
    CommunicationCost cost = optimal->getCost();
    bool isExact = cost == optimal->getLowerBound();
    numInexact += !isExact;

    Search search(mesh, options.redistributions);
    ASSERT_TRUE(succeeded(search.read(getMain(*module))));
    switch (search.run(withoutWork(cost))) {
    case Search::Outcome::TooLarge:
      ++numTooLarge;
      break;
    case Search::Outcome::Cheaper:
      ++numCheaper;
      EXPECT_FALSE(isExact) << "optimal is " << ::print(cost)
                            << ", and there is " << ::print(search.cheaper);
      break;
    case Search::Outcome::NothingCheaper:
      break;
    }
    numWithCost += cost.bytes > 0;

    PropagationOptions other = options;
    other.strategy = PropagationStrategy::Greedy;
    CommunicationCost greedy = propagate(other)->getCost();
    EXPECT_FALSE(withoutWork(greedy) < withoutWork(cost));
    numWorseGreedy += cost.bytes < greedy.bytes;
    other = options;
    other.maxEntries = 64;
    auto bounded = propagate(other);
    EXPECT_FALSE(withoutWork(bounded->getCost()) < withoutWork(cost));
    EXPECT_FALSE(withoutWork(cost) < withoutWork(bounded->getLowerBound()));
    other = options;
    other.exhaustiveOps = 0;
    EXPECT_FALSE(withoutWork(propagate(other)->getCost()) < withoutWork(cost));

    // What the IR says costs what was counted; less, where a redistribution of
    // the program's own changes nothing, so that what is needed of its result
    // is shared with its operand.
    auto countMoves = [&]() {
      unsigned count = 0;
      module->walk([&](RedistributeOp op) { count += !op.getReason(); });
      return count;
    };
    unsigned numMoves = countMoves();
    PropagateOptions passOptions;
    passOptions.latencyBytes = kLatencyBytes;
    passOptions.oneShot = options.redistributions.oneShot;
    passOptions.memory = options.redistributions.memory;
    ASSERT_TRUE(succeeded(run(*module, createPropagate(passOptions))));
    auto counted = countCost(*module, options.redistributions);
    ASSERT_TRUE(succeeded(counted));
    CommunicationCost communication = withoutWork(cost);
    communication.parameterBytes = 0;
    EXPECT_FALSE(communication < *counted);
    if (countMoves() == numMoves)
      EXPECT_EQ(*counted, communication)
          << ::print(*counted) << " in the IR, " << ::print(cost) << "\n"
          << print(*module);

    // A second run finds nothing to do, and what partitioning makes of it
    // receives what was counted.
    std::string once = print(*module);
    ASSERT_TRUE(succeeded(run(*module, createPropagate(passOptions))));
    EXPECT_EQ(print(*module), once);
    PartitionOptions partitionOptions;
    partitionOptions.oneShot = options.redistributions.oneShot;
    partitionOptions.memory = options.redistributions.memory;
    ASSERT_TRUE(succeeded(run(*module, createPartition(partitionOptions))));
    EXPECT_EQ(countReceived(*module), counted->bytes) << once;
    if (HasFailure())
      return;
  }
  RecordProperty("bounded", numInexact);
  RecordProperty("cheaper", numCheaper);
  EXPECT_LE(numInexact, count / 20);
  // Few programs are too large to search, and most have something to choose.
  EXPECT_LE(numTooLarge, count / 10);
  EXPECT_GT(numWithCost, count / 3);
  EXPECT_GT(numWorseGreedy, 0u);
}

/// A program that repeats a random layer, in which parameters, results and the
/// first argument may be placed.
std::string getRepeatedProgram(unsigned seed) {
  std::mt19937 random(seed);
  auto draw = [&](unsigned low, unsigned high) {
    return std::uniform_int_distribution<unsigned>(low, high)(random);
  };
  StringRef meshes[] = {"tp = 4", "dp = 2, tp = 2", "tp = 3"};
  StringRef mesh = meshes[draw(0, 2)];
  bool hasDp = mesh.contains("dp");
  auto drawPlacement = [&]() -> std::string {
    StringRef dims[] = {"{}, {}", "{tp}, {}", "{}, {tp}"};
    StringRef others[] = {"{dp}, {}", "{dp}, {tp}", "{dp, tp}, {}"};
    return "#tp.sharding<@mesh, [" +
           (hasDp && draw(0, 1) ? others[draw(0, 2)] : dims[draw(0, 2)]).str() +
           "]>";
  };
  auto maybePlaced = [&](unsigned outOf) {
    return draw(1, outOf) == 1 ? "{tp.sharding = " + drawPlacement() + "} "
                               : std::string();
  };
  const std::string type = "tensor<24x24xf32>";
  // Values are %carried_LAYER_i and %v_LAYER_i; "~" is the layer's number.
  unsigned numCarried = draw(1, 2), numValues = draw(2, 7);
  std::string layer;
  SmallVector<std::string> values;
  for (unsigned i = 0; i < numCarried; ++i)
    values.push_back("%c" + std::to_string(i) + "_~");
  auto drawValue = [&]() { return values[draw(0, values.size() - 1)]; };
  for (unsigned i = 0; i < numValues; ++i) {
    std::string number = std::to_string(i), name = "%v" + number + "_~";
    switch (draw(0, 4)) {
    case 0:
    case 1:
      // Some are every layer's.
      layer += "  %w" + number + "_~ = nn.parameter \"l" +
               (draw(1, 8) == 1 ? "" : "~") + ".w" + number + "\" " +
               maybePlaced(2) + ": " + type + "\n  " + name + " = nn.linear " +
               drawValue() + ", %w" + number + "_~ " + maybePlaced(5) + ": (" +
               type + ", " + type + ") -> " + type + "\n";
      break;
    case 2:
    case 3:
      layer += "  " + name + " = nn.add " + drawValue() + ", " + drawValue() +
               " " + maybePlaced(6) + ": (" + type + ", " + type + ") -> " +
               type + "\n";
      break;
    case 4:
      layer += "  " + name + " = nn.silu " + drawValue() + " : " + type + "\n";
      break;
    }
    values.push_back(name);
  }
  // What is carried on: the last value, and any.
  SmallVector<std::string> next = {values.back(), drawValue()};
  unsigned numLayers = draw(8, 14);
  std::string body;
  auto rename = [](std::string text, unsigned number) {
    std::string result;
    for (char c : text)
      result += c == '~' ? std::to_string(number) : std::string(1, c);
    return result;
  };
  for (unsigned i = 0; i < numLayers; ++i) {
    // Names that are the same value: what a layer carries is named again.
    std::string text = layer;
    for (unsigned j = 0; j < numCarried; ++j) {
      std::string from = "%c" + std::to_string(j) + "_~", to = "%x";
      if (i > 0) {
        to = next[j];
        // A carried value carried on is one of the layer before, and so on.
        for (unsigned back = i - 1;; --back) {
          if (to.rfind("%c", 0) != 0) {
            to = rename(to, back);
            break;
          }
          if (back == 0) {
            to = "%x";
            break;
          }
          to = next[to[2] - '0'];
        }
      }
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
    }
    body += rename(text, i);
  }
  std::string last = rename(values.back(), numLayers - 1);
  // Some values leave a layer in the middle.
  if (draw(1, 8) == 1) {
    body += "  %end = nn.add " + last + ", " +
            rename(values.back(), numLayers / 2) + " : (" + type + ", " + type +
            ") -> " + type + "\n";
    last = "%end";
  }
  return "tp.mesh @mesh(" + mesh.str() + ")\nfunc.func @main(%x: " + type +
         " " + maybePlaced(2) + ") -> (" + type + " " + maybePlaced(2) +
         ") {\n" + body + "  return " + last + " : " + type + "\n}\n";
}

TEST_P(RandomPropagation, MergesPartsThatRepeat) {
  unsigned numMerged = 0, numWithCost = 0, count = getCount(100);
  for (unsigned i = 0; i < count; ++i) {
    std::string text = getRepeatedProgram(GetParam() + 4 * i);
    SCOPED_TRACE("seed " + std::to_string(GetParam() + 4 * i) + ":\n" + text);
    OwningOpRef<ModuleOp> module = parse(text);
    ASSERT_TRUE(module);
    MeshOp mesh = getMesh(*module);
    func::FuncOp main = getMain(*module);
    PropagationOptions options;
    options.latencyBytes = kLatencyBytes;
    options.exhaustiveOps = i % 2 ? 0 : 256;
    PropagationOptions whole = options;
    whole.mergesRepeated = false;
    Propagation merged(mesh, options), expected(mesh, whole);
    ASSERT_TRUE(succeeded(expected.run({main})));
    ASSERT_TRUE(succeeded(merged.run({main})));
    ASSERT_EQ(expected.getNumMergedParts(), 0u);
    numMerged += merged.getNumMergedParts() > 0;
    CommunicationCost cost = merged.getCost();
    numWithCost += cost.bytes > 0;
    EXPECT_FALSE(cost < expected.getLowerBound());
    if (expected.getCost() == expected.getLowerBound())
      EXPECT_EQ(cost, expected.getCost())
          << ::print(cost) << " " << ::print(expected.getCost());
    const Propagation::Function &function = merged.getFunctions().front(),
                                &other = expected.getFunctions().front();
    EXPECT_EQ(function.shardings.size(), other.shardings.size());
    // Of each op, no other choice moves less. Uses that share what they need
    // may make fewer copies than the search counts.
    if (cost == merged.getLowerBound())
      for (Operation &op : main.getBody().front().without_terminator())
        for (const auto &alternative : merged.getAlternatives(0, &op, 2))
          EXPECT_FALSE(withoutWork(alternative.delta) < CommunicationCost());

    // What the IR says costs what was counted.
    PropagateOptions passOptions;
    passOptions.latencyBytes = kLatencyBytes;
    passOptions.exhaustiveOps = options.exhaustiveOps;
    ASSERT_TRUE(succeeded(run(*module, createPropagate(passOptions))));
    auto counted = countCost(*module, {});
    ASSERT_TRUE(succeeded(counted));
    CommunicationCost communication = withoutWork(cost);
    communication.parameterBytes = 0;
    EXPECT_EQ(*counted, communication)
        << ::print(*counted) << " in the IR, " << ::print(cost) << "\n"
        << print(*module);
    ASSERT_TRUE(succeeded(run(*module, createPartition())));
    if (HasFailure())
      return;
  }
  EXPECT_GT(numMerged, count / 4);
  EXPECT_GT(numWithCost, count / 2);
}

} // namespace
