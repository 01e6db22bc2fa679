//===- ContextTest.cpp - Attention over a split sequence ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the partition hooks of attention build where the rows are split, over
// doubles, beside the attention of all rows. The exact execution of RulesTest
// can't compare these: an exponential of a sum isn't the product of exponentials
// in it, and the log-sum-exp relies on that.
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "ProofTest.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Sharding/SplitInference.h"
#include <random>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

namespace {

struct Attention {
  const char *arguments, *results, *op;
  unsigned numResults = 1;
};

/// Groups of heads; a mask of rows and columns, with a row that sees nothing in
/// it, which the inputs make; a mask of columns.
constexpr Attention kAttentions[] = {
    {"%a: tensor<2x4x12x3xf64>, %b: tensor<2x2x12x3xf64>, %c: "
     "tensor<2x2x12x2xf64>",
     "tensor<2x4x12x2xf64>", "nn.attention CAUSAL %a, %b, %c scale 0.5"},
    {"%a: tensor<2x12x3xf64>, %b: tensor<2x12x3xf64>, %c: tensor<2x12x2xf64>, "
     "%m: tensor<12x12xi1>",
     "tensor<2x12x2xf64>", "nn.attention %a, %b, %c mask %m scale 0.5"},
    {"%a: tensor<2x12x3xf64>, %b: tensor<2x12x3xf64>, %c: tensor<2x12x2xf64>, "
     "%m: tensor<1x12xf64>",
     "tensor<2x12x2xf64>", "nn.attention %a, %b, %c mask %m scale 0.5"},
    {"%a: tensor<2x4x12x3xf64>, %b: tensor<2x2x12x3xf64>, %c: "
     "tensor<2x2x12x2xf64>, %g: tensor<2x4x12x2xf64>",
     "tensor<2x4x12x3xf64>, tensor<2x4x12x3xf64>, tensor<2x4x12x2xf64>",
     "nn.attention_gradient CAUSAL %a, %b, %c gradient %g scale 0.5", 3},
    {"%a: tensor<2x12x3xf64>, %b: tensor<2x12x3xf64>, %c: tensor<2x12x2xf64>, "
     "%g: tensor<2x12x2xf64>, %m: tensor<12x12xi1>",
     "tensor<2x12x3xf64>, tensor<2x12x3xf64>, tensor<2x12x2xf64>",
     "nn.attention_gradient %a, %b, %c gradient %g mask %m scale 0.5", 3},
};

class ContextTest : public ProofTest {
protected:
  OwningOpRef<ModuleOp> parse(const Attention &attention, bool isCausal,
                              StringRef method, int64_t ranks) {
    std::string op = attention.op, types;
    size_t causal = op.find("CAUSAL");
    if (causal != std::string::npos)
      op.replace(causal, 6, isCausal ? "causal" : "");
    SmallVector<StringRef> arguments;
    StringRef(attention.arguments).split(arguments, ", %");
    for (StringRef argument : arguments)
      types += (types.empty() ? "" : ", ") + argument.split(": ").second.str();
    std::string results = attention.results, values;
    for (unsigned i = 0; i < attention.numResults; ++i)
      values += (i ? ", %r#" : "%r#") + std::to_string(i);
    std::string text =
        "tp.mesh @mesh(t = " + std::to_string(ranks) + ")\nfunc.func @f(" +
        attention.arguments + ") -> (" + results +
        ") {\n  %r:" + std::to_string(attention.numResults) + " = " + op +
        " context " + method.str() + " : (" + types + ") -> (" + results +
        ")\n  return " + values + " : " + results + "\n}\n";
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module;
  }

  /// Numbers for the arguments; the second row of a mask sees nothing.
  Values draw(func::FuncOp function) {
    std::mt19937 generator(7);
    std::uniform_real_distribution<double> uniform(-2, 2);
    Values values;
    for (Type argument : function.getArgumentTypes()) {
      auto type = cast<RankedTensorType>(argument);
      bool isBool = type.getElementType().isInteger(1);
      values.arguments.push_back(generate(
          Shape(type.getShape().begin(), type.getShape().end()),
          [&](const Shape &index) {
            double number = uniform(generator);
            return !isBool ? number : index[0] == 1 ? 0 : double(number > -1);
          }));
    }
    return values;
  }

  /// Replaces what the evaluator doesn't know by its formulas.
  template <typename OpT>
  static void decompose(func::FuncOp function) {
    function.walk([](OpT op) {
      ImplicitLocOpBuilder b(op.getLoc(), op);
      op->replaceAllUsesWith(op.decompose(b));
      op->erase();
    });
  }
  static void decompose(func::FuncOp function) {
    decompose<nn::AttentionBlockOp>(function);
    decompose<nn::AttentionBlockGradientOp>(function);
    decompose<nn::AttentionGradientOp>(function);
  }

  void check(const Attention &attention, bool isCausal, StringRef method,
             int64_t ranks, ArrayRef<int64_t> segments = {}) {
    SCOPED_TRACE(std::string(attention.op) + ", " + method.str() + " over " +
                 std::to_string(ranks) + (isCausal ? ", causal" : ""));
    OwningOpRef<ModuleOp> module = parse(attention, isCausal, method, ranks);
    ASSERT_TRUE(module);
    MeshOp mesh = *module->getOps<MeshOp>().begin();
    auto reference = *module->getOps<func::FuncOp>().begin();
    Operation *op = &reference.getBody().front().front();
    auto ruleOp = cast<ShardingRuleOpInterface>(op);
    ShardingRule rule = ruleOp.getShardingRule();
    OpSplit split = getReplicatedSplit(rule, mesh);
    unsigned rows = *rule.getFactor("t");
    AxisRefAttr axis = AxisRefAttr::get(&context, "t");
    split.factorSegments[rows].assign(segments.begin(), segments.end());
    ASSERT_TRUE(canSplit(rule, split, rows, axis));
    split.factorAxes[rows].push_back(axis);

    OwningOpRef<ModuleOp> local = ModuleOp::create(mesh.getLoc());
    OpBuilder b = OpBuilder::atBlockEnd(local->getBody());
    auto localMesh = cast<MeshOp>(b.clone(*mesh));
    SmallVector<func::FuncOp> programs;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      split.rank = rank;
      SmallVector<Type> types, localResults, wholeResults;
      SmallVector<ShardingAttr> operands, results;
      for (unsigned i = 0; i < op->getNumOperands(); ++i) {
        operands.push_back(getOperandSharding(rule, split, i));
        types.push_back(
            getLocalType(cast<RankedTensorType>(op->getOperand(i).getType()),
                         operands.back(), mesh, rank));
      }
      for (unsigned i = 0; i < op->getNumResults(); ++i) {
        results.push_back(getResultSharding(rule, split, i));
        localResults.push_back(
            getLocalType(cast<RankedTensorType>(op->getResult(i).getType()),
                         results.back(), mesh, rank));
      }
      auto function = func::FuncOp::create(
          b, op->getLoc(), "f" + std::to_string(rank),
          FunctionType::get(&context, types, localResults));
      for (auto [i, sharding] : llvm::enumerate(operands)) {
        function.setArgAttr(i, kShardingAttr, sharding);
        function.setArgAttr(i, kGlobalTypeAttr,
                            TypeAttr::get(op->getOperand(i).getType()));
      }
      OpBuilder body = OpBuilder::atBlockEnd(function.addEntryBlock());
      auto built =
          ruleOp.partition(body, function.getArguments(), localResults, split);
      ASSERT_TRUE(succeeded(built));
      for (auto [i, value] : llvm::enumerate(*built)) {
        EXPECT_EQ(value.getType(), localResults[i]);
        if (results[i].isPartial()) {
          value = AllReduceOp::create(
              body, op->getLoc(), value.getType(), value, ReductionKind::Sum,
              FlatSymbolRefAttr::get(&context, "mesh"),
              AxisListAttr::get(&context, axis), StringAttr(), StringAttr(),
              IntegerAttr());
          results[i] = ShardingAttr::getReplicated(results[i].getMesh(),
                                                   results[i].getRank());
        }
        function.setResultAttr(i, kShardingAttr, results[i]);
        function.setResultAttr(i, kGlobalTypeAttr,
                               TypeAttr::get(op->getResult(i).getType()));
      }
      func::ReturnOp::create(body, op->getLoc(), *built);
      ASSERT_TRUE(succeeded(verify(function)));
      decompose(function);
      programs.push_back(function);
    }
    decompose(reference);
    Values values = draw(reference);
    auto expected = evaluate(reference, values);
    auto found = evaluateRanks(programs, localMesh, reference, values);
    ASSERT_TRUE(expected && found);
    EXPECT_TRUE(areEqual(*found, *expected));
  }
};

TEST_F(ContextTest, RowsEqualWhole) {
  for (const Attention &attention : kAttentions)
    for (StringRef method : {"ring", "all_gather", "cheapest"})
      for (int64_t ranks : {1, 2, 3, 4})
        for (bool isCausal : {false, true})
          check(attention, isCausal, method, ranks);
}

/// Blocks of other sizes, and a rank without any rows.
TEST_F(ContextTest, UnevenRowsEqualWhole) {
  for (const Attention &attention : kAttentions)
    for (int64_t ranks : {5, 7, 13})
      for (bool isCausal : {false, true})
        check(attention, isCausal, "all_gather", ranks);
}

TEST_F(ContextTest, SegmentsOfRowsEqualWhole) {
  for (const Attention &attention : kAttentions)
    check(attention, /*isCausal=*/true, "all_gather", 2, {4, 8});
}

TEST_F(ContextTest, RingsNeedBlocksOfOneSize) {
  OwningOpRef<ModuleOp> module =
      parse(kAttentions[0], /*isCausal=*/true, "ring", 5);
  ASSERT_TRUE(module);
  MeshOp mesh = *module->getOps<MeshOp>().begin();
  auto function = *module->getOps<func::FuncOp>().begin();
  auto op = cast<ShardingRuleOpInterface>(function.getBody().front().front());
  ShardingRule rule = op.getShardingRule();
  EXPECT_FALSE(canSplit(rule, getReplicatedSplit(rule, mesh),
                        *rule.getFactor("t"), AxisRefAttr::get(&context, "t")));
}

} // namespace
