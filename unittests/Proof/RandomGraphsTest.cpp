//===- RandomGraphsTest.cpp - Random programs, proven and executed --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random programs with random placements, propagated in several ways,
// partitioned, their collectives optimized: every rank's block of every result
// is that of the whole, by execution, and the proof, which
// executes nothing, agrees.
//
//===----------------------------------------------------------------------===//

#include "../Sharding/RandomGraph.h"
#include "ProofTest.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Proof/Equivalence.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include <cstdlib>

using namespace mlir;
using namespace mlir::tp;

namespace {

/// How many programs each of the shards below looks at.
unsigned getCount(unsigned count) {
  const char *text = std::getenv("TP_RANDOM_GRAPHS");
  return text ? std::strtoul(text, nullptr, 10) : count;
}

/// Strategies in turn.
PropagateOptions drawOptions(unsigned seed) {
  PropagateOptions options;
  if (seed % 3 == 1)
    options.strategy = PropagationStrategy::Greedy;
  if (seed % 3 == 2)
    options.exhaustiveOps = 0;
  // Bytes count, or collectives.
  options.latencyBytes = seed % 2 ? 16 : 1 << 16;
  return options;
}

class RandomGraphs : public test::ProofTest,
                     public testing::WithParamInterface<unsigned> {
protected:
  RandomGraphs() : ProofTest(MLIRContext::Threading::DISABLED) {}
};

INSTANTIATE_TEST_SUITE_P(Shards, RandomGraphs, testing::Range(0u, 4u));

TEST_P(RandomGraphs, EqualTheReference) {
  int64_t numCollectives = 0, numUnproven = 0;
  unsigned count = getCount(250);
  for (unsigned i = 0; i < count; ++i) {
    unsigned seed = 100'000 + GetParam() + 4 * i;
    std::string text =
        RandomGraph(seed, RandomGraph::getMesh(seed % 6)).get(10);
    SCOPED_TRACE("seed " + std::to_string(seed) + ":\n" + text);
    auto reference = parseSourceString<ModuleOp>(text, &context);
    auto ranks = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(reference && ranks);
    PassManager passes(&context);
    passes.addPass(createPropagate(drawOptions(seed)));
    passes.addPass(createPartition());
    if (seed % 4)
      passes.addPass(createOptimizeCollectives());
    ASSERT_TRUE(succeeded(passes.run(*ranks)));
    ranks->walk([&](CollectiveOpInterface) { ++numCollectives; });

    auto programs = getRanks(getPrograms(*ranks)->front(),
                             *ranks->getOps<MeshOp>().begin());
    ASSERT_TRUE(succeeded(programs));
    EquivalenceOptions options;
    options.alwaysExecute = true;
    Equivalence result =
        checkEquivalence(*reference->getOps<func::FuncOp>().begin(), *programs,
                         *ranks->getOps<MeshOp>().begin(), options);
    // Reshapes by parts of a mesh dimension aren't all proven.
    numUnproven += result.verdict == Verdict::Tested;
    EXPECT_TRUE(result.verdict == Verdict::Proven ||
                result.verdict == Verdict::Tested)
        << (result.mismatch ? result.mismatch->reason : "");
    EXPECT_EQ(result.reason, "");
    EXPECT_FALSE(result.difference);
    if (HasFailure()) {
      std::string printed;
      llvm::raw_string_ostream(printed) << *ranks;
      FAIL() << printed;
    }
  }
  // The ranks have something to say to each other.
  EXPECT_GT(numCollectives, count);
  EXPECT_LE(numUnproven, count / 50);
}

} // namespace
