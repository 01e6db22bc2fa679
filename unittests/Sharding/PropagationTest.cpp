//===- PropagationTest.cpp - Placements of random programs, searched ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For random programs, the placements that the propagation chooses are compared
// with an exhaustive search. What the choice costs is counted from the IR that
// it becomes.
//
//===----------------------------------------------------------------------===//

#include "tp/Sharding/Propagation/Propagation.h"
#include "ExhaustivePropagation.h"
#include "RandomGraph.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "tp/Sharding/SplitInference.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

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
  CostOptions costs{mesh, planner, kLatencyBytes};
  func::FuncOp function = getMain(module);
  DenseMap<Value, ShardingAttr> placed;
  for (BlockArgument argument : function.getArguments())
    placed[argument] = getArgSharding(function, argument.getArgNumber());
  CommunicationCost sum;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (auto move = dyn_cast<RedistributeOp>(op)) {
      placed[move.getResult()] = move.getSharding();
      sum += costs.getMove(placed.lookup(move.getInput()), move.getSharding(),
                           cast<RankedTensorType>(move.getType()),
                           /*isParameter=*/false);
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
    sum += costs.getOwn(rule, *split);
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
  unsigned numTooLarge = 0, numInexact = 0, numCheaper = 0, numEqual = 0,
           numWithCost = 0, numWorseGreedy = 0;
  unsigned count = getCount(60);
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

    RedistributionPlanner planner(mesh, options.redistributions);
    ExhaustivePropagation all(getMain(*module), {mesh, planner, kLatencyBytes});
    switch (all.run(withoutWork(cost))) {
    case ExhaustivePropagation::Outcome::TooLarge:
      ++numTooLarge;
      break;
    case ExhaustivePropagation::Outcome::Found:
      numEqual += all.least == withoutWork(cost);
      if (!(all.least < withoutWork(cost)))
        break;
      ++numCheaper;
      EXPECT_FALSE(isExact) << "optimal is " << ::print(cost)
                            << ", and there is " << ::print(all.least);
      break;
    case ExhaustivePropagation::Outcome::None:
      // The choice splits something in segments or over parts.
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
  RecordProperty("equal", numEqual);
  EXPECT_LE(numInexact, count / 20);
  // Few programs are too large to search, and most have something to choose.
  EXPECT_GE(numEqual, count * 3 / 4);
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

TEST_P(RandomPropagation, ElidesEqualLayers) {
  unsigned numElided = 0, numWithCost = 0, count = getCount(50);
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
    whole.elidesLayers = false;
    Propagation elided(mesh, options), expected(mesh, whole);
    ASSERT_TRUE(succeeded(expected.run({main})));
    ASSERT_TRUE(succeeded(elided.run({main})));
    ASSERT_EQ(expected.getNumElidedLayers(), 0u);
    numElided += elided.getNumElidedLayers() > 0;
    CommunicationCost cost = elided.getCost();
    numWithCost += cost.bytes > 0;
    EXPECT_FALSE(cost < expected.getLowerBound());
    if (expected.getCost() == expected.getLowerBound())
      EXPECT_EQ(cost, expected.getCost())
          << ::print(cost) << " " << ::print(expected.getCost());
    const Propagation::Function &function = elided.getFunctions().front(),
                                &other = expected.getFunctions().front();
    EXPECT_EQ(function.shardings.size(), other.shardings.size());
    // Of each op, no other choice moves less. Uses that share what they need
    // may make fewer copies than the search counts.
    if (cost == elided.getLowerBound())
      for (Operation &op : main.getBody().front().without_terminator())
        for (const auto &alternative : elided.getAlternatives(0, &op, 2))
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
  EXPECT_GT(numElided, count / 4);
  EXPECT_GT(numWithCost, count / 2);
}

} // namespace
