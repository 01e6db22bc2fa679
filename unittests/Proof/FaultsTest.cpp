//===- FaultsTest.cpp - Planted faults, caught ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Per-rank programs are changed in one place at a time: an operand, an
// attribute, an op that is left out, done twice or moved, a rank that runs
// another's program. Whether a change is a fault is found by execution; each
// one that is must be found by rules and block algebra, which execute nothing. The two share no code but the IR.
//
//===----------------------------------------------------------------------===//

#include "Faults.h"
#include "Models.h"
#include "ProofTest.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Proof/Equivalence.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;
using test::Fault;

namespace {

class FaultsTest : public test::ProofTest {
protected:
  /// What is done to the collectives by request.
  enum class Form { Plain, Joined, InChunks, OnBlocks, InViews };

  OwningOpRef<ModuleOp> parallelize(ModuleOp model, Form form) {
    OwningOpRef<ModuleOp> ranks = model.clone();
    PassManager passes(&context);
    ParallelizeOptions options;
    if (form == Form::Joined)
      options.bucketBytes = 1 << 20;
    if (form == Form::OnBlocks)
      options.sequenceParallel = true;
    if (form == Form::InViews)
      options.oneShot = false;
    if (form == Form::InChunks) {
      options.overlap = true;
      options.chunks = 2;
    }
    buildParallelizePipeline(passes, options);
    passes.addPass(createLowerStartWait());
    EXPECT_TRUE(succeeded(passes.run(*ranks)));
    return ranks;
  }

  static int64_t countCollectives(ModuleOp ranks) {
    int64_t count = 0;
    ranks.walk([&](CollectiveOpInterface) { ++count; });
    return count;
  }

  Verdict check(ModuleOp ranks, ModuleOp model, bool prove,
                std::string *reason = nullptr) {
    MeshOp mesh = *ranks.getOps<MeshOp>().begin();
    SmallVector<func::FuncOp> functions(ranks.getOps<func::FuncOp>());
    auto programs = getRanks(functions, mesh);
    if (failed(programs))
      return prove ? Verdict::Unproven : Verdict::Refuted;
    EquivalenceOptions options;
    options.prove = prove;
    options.maxOperations = prove ? 0 : options.maxOperations;
    auto result = checkEquivalence(*model.getOps<func::FuncOp>().begin(),
                                   *programs, mesh, options);
    if (reason)
      *reason = result.mismatch ? result.mismatch->reason : result.reason;
    return result.verdict;
  }
};

TEST_F(FaultsTest, AreCaught) {
  int64_t numFaults = 0, numHarmless = 0, numNotProven = 0;
  std::map<Form, int64_t> numModels;
  llvm::MapVector<StringRef, int64_t> byKind;
  std::vector<std::string> kinds;
  llvm::StringMap<int64_t> caught;
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  auto plantAll = [&](const test::Model &each, Form form) {
    SCOPED_TRACE(each.name);
    auto model = parseSourceString<ModuleOp>(each.text, &context);
    ASSERT_TRUE(model);
    OwningOpRef<ModuleOp> ranks = parallelize(*model, form);
    if (form != Form::Plain &&
        countCollectives(*ranks) ==
            countCollectives(*parallelize(*model, Form::Plain)))
      return;
    ++numModels[form];
    std::string reason;
    ASSERT_EQ(check(*ranks, *model, /*prove=*/true, &reason), Verdict::Proven)
        << reason;
    ASSERT_EQ(check(*ranks, *model, /*prove=*/false, &reason), Verdict::Tested)
        << reason;

    MeshOp mesh = *ranks->getOps<MeshOp>().begin();
    SmallVector<Operation *> ops;
    ranks->walk([&](Operation *op) { ops.push_back(op); });
    for (auto [index, op] : llvm::enumerate(ops)) {
      if (isa<ModuleOp, MeshOp>(op))
        continue;
      std::vector<Fault> faults = test::getFaults(op, mesh);
      llvm::append_range(faults, test::getPlacementFaults(op, mesh));
      for (const Fault &fault : faults) {
        OwningOpRef<ModuleOp> copy = ranks->clone();
        SmallVector<Operation *> copies;
        copy->walk([&](Operation *op) { copies.push_back(op); });
        fault.plant(copies[index]);
        // What no program can be is caught by the verifier.
        if (failed(verify(*copy)))
          continue;
        Verdict proof = check(*copy, *model, /*prove=*/true);
        Verdict execution = check(*copy, *model, /*prove=*/false);
        std::string text;
        llvm::raw_string_ostream os(text);
        os << fault.kind << " at ";
        op->print(os, OpPrintingFlags().skipRegions());
        if (execution == Verdict::Refuted) {
          ++numFaults;
          ++caught[fault.kind];
          EXPECT_NE(proof, Verdict::Proven) << text;
        } else {
          EXPECT_TRUE(execution == Verdict::Tested || proof != Verdict::Proven)
              << "not executed, yet proven: " << text;
          ++numHarmless;
          numNotProven += proof != Verdict::Proven;
        }
      }
    }
  };
  for (const test::Model &each : test::kModels)
    for (Form form : {Form::Plain, Form::Joined, Form::InChunks, Form::OnBlocks,
                      Form::InViews})
      plantAll(each, form);
  EXPECT_GE(numModels[Form::Joined], 2);
  EXPECT_GE(numModels[Form::InChunks], 1);
  EXPECT_GE(numModels[Form::OnBlocks], 2);
  EXPECT_GE(numModels[Form::InViews], 1);
  for (auto &kind : caught)
    llvm::outs() << kind.second << " " << kind.first() << "\n";
  llvm::outs() << numFaults << " faults, all caught; " << numHarmless
               << " changes change nothing, of which " << numNotProven
               << " aren't proven\n";
  EXPECT_GE(numFaults, 200);
  for (StringRef kind :
       {"drop collective", "wrong group", "swapped gather order",
        "bias on every rank", "attribute start", "ranks", "operand",
        "swap operands", "reduction", "comparison", "attribute size",
        "attribute dim", "placement of an argument", "placement of a result",
        "placement of a parameter", "the same slice on all ranks",
        "beginning of a halo"})
    EXPECT_GT(caught.lookup(kind), 0) << kind.str();
}

} // namespace
