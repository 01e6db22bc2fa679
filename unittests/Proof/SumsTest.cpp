//===- SumsTest.cpp - Regrouped sums, by enumeration ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All trees of sums and differences of a whole value and of two or three
// Partial ones, in ops of nn, of arith and of both: each program is valid, has
// one reduction and is proven. So are programs with another order of the terms;
// those with other terms are not.
//
//===----------------------------------------------------------------------===//

#include "ProofTest.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Proof/Equivalence.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include <random>

using namespace mlir;
using namespace mlir::tp;

namespace {

using Texts = std::vector<std::string>;

/// What an element type's sums are called.
struct Element {
  const char *type;
  std::vector<const char *> ops;
};

/// `op` of two values of `type`.
std::string write(StringRef op, StringRef a, StringRef b, StringRef type) {
  std::string text = (op + " " + a + ", " + b + " : ").str();
  return text + (op.starts_with("nn.")
                     ? ("(" + type + ", " + type + ") -> " + type).str()
                     : type.str());
}

class SumsTest : public test::ProofTest {
protected:
  SumsTest() : ProofTest(MLIRContext::Threading::DISABLED) {}

  /// Every tree over `leaves`, in every order, with every choice of `ops`, as
  /// lines, the last of which is the root.
  std::vector<Texts> getTrees(ArrayRef<std::string> leaves,
                              const Element &element, StringRef type) {
    if (leaves.size() == 1)
      return {{leaves.front()}};
    std::vector<Texts> trees;
    for (unsigned mask = 1; mask + 1 < 1u << leaves.size(); ++mask) {
      Texts left, right;
      for (auto [i, leaf] : llvm::enumerate(leaves))
        (mask >> i & 1 ? left : right).push_back(leaf);
      for (const Texts &a : getTrees(left, element, type))
        for (const Texts &b : getTrees(right, element, type))
          for (const char *op : element.ops) {
            Texts tree;
            llvm::append_range(tree, ArrayRef(a).drop_back());
            llvm::append_range(tree, ArrayRef(b).drop_back());
            std::string name = "%s" + std::to_string(numValues++);
            tree.push_back(name + " = " + write(op, a.back(), b.back(), type));
            tree.push_back(name);
            trees.push_back(std::move(tree));
          }
    }
    return trees;
  }

  /// Whole `x`, Partial `p0`, `p1`, …; what `tree` computes is placed as
  /// `result` says.
  std::string getText(const Texts &tree, unsigned numPartial, StringRef type,
                      StringRef placement) {
    std::string text;
    llvm::raw_string_ostream os(text);
    std::string sharding =
        (" {tp.sharding = #tp.sharding" + placement + "}").str();
    os << "tp.mesh @mesh(tp = 2)\nfunc.func @main(%x: " << type << sharding;
    for (unsigned i = 0; i < numPartial; ++i)
      os << ", %p" << i << ": " << type
         << " {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: "
            "sum}>}";
    os << ") -> (" << type << sharding << ") {\n";
    for (unsigned i = 0; i < numPartial; ++i)
      os << "  %r" << i << " = tp.redistribute %p" << i << " to " << placement
         << " : " << type << "\n";
    for (StringRef line : ArrayRef(tree).drop_back())
      os << "  " << line << "\n";
    os << "  return " << tree.back() << " : " << type << "\n}\n";
    return text;
  }

  /// What is known of the ranks' programs of `program`, with `text` for the
  /// reference.
  Verdict verify(const std::string &text, const std::string &program) {
    auto model = parseSourceString<ModuleOp>(text, &context);
    auto ranks = parseSourceString<ModuleOp>(program, &context);
    PassManager passes(&context);
    buildParallelizePipeline(passes, {});
    if (!model || !ranks || failed(passes.run(*ranks))) {
      ADD_FAILURE() << "no programs";
      return Verdict::Unproven;
    }
    MeshOp mesh = *ranks->getOps<MeshOp>().begin();
    auto programs = getRanks(
        SmallVector<func::FuncOp>(ranks->getOps<func::FuncOp>()), mesh);
    if (failed(programs)) {
      ADD_FAILURE() << "no ranks";
      return Verdict::Unproven;
    }
    EquivalenceOptions options;
    options.maxOperations = 0;
    return checkEquivalence(*model->getOps<func::FuncOp>().begin(), *programs,
                            mesh, options)
        .verdict;
  }

  void check(const std::string &text, bool isExecuted,
             int64_t expectedCollectives = 1) {
    auto model = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(model);
    OwningOpRef<ModuleOp> ranks = model->clone();
    PassManager passes(&context);
    buildParallelizePipeline(passes, {});
    ASSERT_TRUE(succeeded(passes.run(*ranks)));
    int64_t numCollectives = 0;
    ranks->walk([&](CollectiveOpInterface) { ++numCollectives; });
    EXPECT_EQ(numCollectives, expectedCollectives);
    MeshOp mesh = *ranks->getOps<MeshOp>().begin();
    auto programs = getRanks(
        SmallVector<func::FuncOp>(ranks->getOps<func::FuncOp>()), mesh);
    ASSERT_TRUE(succeeded(programs));
    EquivalenceOptions options;
    options.alwaysExecute = isExecuted;
    options.maxOperations = isExecuted ? options.maxOperations : 0;
    Equivalence result = checkEquivalence(
        *model->getOps<func::FuncOp>().begin(), *programs, mesh, options);
    EXPECT_EQ(result.verdict, Verdict::Proven)
        << (result.mismatch ? result.mismatch->reason : result.reason);
    if (HasFailure()) {
      std::string printed;
      llvm::raw_string_ostream(printed) << *ranks;
      FAIL() << printed;
    }
  }

  void checkAll(const Element &element, unsigned numPartial, bool isExecuted) {
    std::string type = std::string("tensor<4x6x") + element.type + ">";
    Texts leaves = {"%x"};
    for (unsigned i = 0; i < numPartial; ++i)
      leaves.push_back("%r" + std::to_string(i));
    for (StringRef placement : {"<@mesh, [{}, {}]>", "<@mesh, [{tp}, {}]>"})
      for (const Texts &tree : getTrees(leaves, element, type)) {
        std::string text = getText(tree, numPartial, type, placement);
        SCOPED_TRACE(text);
        ++numPrograms;
        check(text, isExecuted);
        if (HasFailure() && ++numFailures > 3)
          return;
      }
  }

  int64_t numPrograms = 0;
  int64_t numValues = 0, numFailures = 0;
};

TEST_F(SumsTest, OfTwoReductions) {
  for (const Element &element : std::initializer_list<Element>{
           {"f32", {"nn.add", "nn.sub", "arith.addf", "arith.subf"}},
           {"i32", {"nn.add", "nn.sub", "arith.addi", "arith.subi"}}})
    checkAll(element, 2, /*isExecuted=*/true);
  llvm::outs() << numPrograms << " sums are proven\n";
}

/// Of element types that nn doesn't have.
TEST_F(SumsTest, OfUpstreamTypes) {
  for (const Element &element :
       std::initializer_list<Element>{{"index", {"arith.addi", "arith.subi"}},
                                      {"i4", {"arith.addi", "arith.subi"}},
                                      {"f80", {"arith.addf", "arith.subf"}}})
    checkAll(element, 2, /*isExecuted=*/false);
}

TEST_F(SumsTest, OfThreeReductions) {
  for (const Element &element : std::initializer_list<Element>{
           {"f32", {"arith.addf"}}, {"f32", {"nn.add", "arith.subf"}}})
    checkAll(element, 3, /*isExecuted=*/false);
}

/// Blocks with parallel residuals, one after the other: the first sum is used
/// whole before it is a leaf of the second one.
TEST_F(SumsTest, InSeries) {
  std::string type = "tensor<4x6xf32>";
  std::string sharding = " {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}";
  Element element = {"f32", {"nn.add"}};
  for (const Texts &first : getTrees({"%x", "%r0", "%r1"}, element, type))
    for (const Texts &second :
         getTrees({first.back(), "%r2", "%r3"}, element, type)) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "tp.mesh @mesh(tp = 2)\nfunc.func @main(%x: " << type << sharding;
      for (unsigned i = 0; i < 4; ++i)
        os << ", %p" << i << ": " << type
           << " {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: "
              "sum}>}";
      os << ") -> (" << type << sharding << ", " << type << sharding << ") {\n";
      for (unsigned i = 0; i < 4; ++i)
        os << "  %r" << i << " = tp.redistribute %p" << i
           << " to <@mesh, [{}, {}]> : " << type << "\n";
      for (StringRef line : ArrayRef(first).drop_back())
        os << "  " << line << "\n";
      os << "  %norm = nn.exp " << first.back() << " : " << type << "\n";
      for (StringRef line : ArrayRef(second).drop_back())
        os << "  " << line << "\n";
      os << "  return %norm, " << second.back() << " : " << type << ", " << type
         << "\n}\n";
      SCOPED_TRACE(text);
      check(text, /*isExecuted=*/false, /*expectedCollectives=*/2);
      if (HasFailure())
        return;
    }
}

/// Terms that repeat, whole ones and Partial ones, in other orders than the
/// reference's; one term too few or too many isn't proven.
TEST_F(SumsTest, InOtherOrders) {
  std::string type = "tensor<4x6xf32>";
  std::mt19937 random(1);
  for (const Element &element : std::initializer_list<Element>{
           {"f32", {"nn.add"}}, {"f32", {"arith.addf"}}})
    for (const Texts &leaves :
         {Texts{"%x", "%x", "%r0", "%r0"}, Texts{"%x", "%r0", "%r1", "%r1"},
          Texts{"%x", "%x", "%x", "%r0"}, Texts{"%x", "%r0", "%r1", "%r2"}}) {
      std::vector<Texts> trees = getTrees(leaves, element, type);
      Texts more = leaves;
      more.push_back(leaves.back());
      std::vector<Texts> tooMany = getTrees(more, element, type);
      std::vector<Texts> tooFew =
          getTrees(ArrayRef(leaves).drop_back(), element, type);
      for (StringRef placement : {"<@mesh, [{}, {}]>", "<@mesh, [{tp}, {}]>"})
        for (unsigned i = 0; i < 30; ++i) {
          auto draw = [&](const std::vector<Texts> &from) {
            return getText(from[random() % from.size()], 3, type, placement);
          };
          std::string text = draw(trees), program = draw(trees);
          SCOPED_TRACE(text + program);
          EXPECT_EQ(verify(text, program), Verdict::Proven);
          EXPECT_EQ(verify(text, draw(tooMany)), Verdict::Unproven);
          EXPECT_EQ(verify(text, draw(tooFew)), Verdict::Unproven);
          if (HasFailure())
            return;
        }
    }
}

/// Sums of nn broadcast; those of arith take operands of one shape.
TEST_F(SumsTest, OfSmallerShapes) {
  for (StringRef last : {"nn.add", "nn.sub", "arith.addf", "arith.subf"})
    for (bool isSwapped : {false, true}) {
      std::string text = R"(
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4x6xf32>, %y: tensor<1x6xf32>,
                %p: tensor<1x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>},
                %q: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}) -> tensor<4x6xf32> {
  %0 = tp.redistribute %p to <@mesh, [{}, {}]> : tensor<1x6xf32>
  %1 = tp.redistribute %q to <@mesh, [{}, {}]> : tensor<4x6xf32>
  %2 = nn.add %x, %0 : (tensor<4x6xf32>, tensor<1x6xf32>) -> tensor<4x6xf32>
  %3 = nn.sub %1, %y : (tensor<4x6xf32>, tensor<1x6xf32>) -> tensor<4x6xf32>
  %4 = )" +
                         write(last, isSwapped ? "%3" : "%2",
                               isSwapped ? "%2" : "%3", "tensor<4x6xf32>") +
                         "\n  return %4 : tensor<4x6xf32>\n}\n";
      SCOPED_TRACE(text);
      check(text, /*isExecuted=*/true);
    }
}

} // namespace
