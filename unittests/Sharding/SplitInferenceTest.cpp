//===- SplitInferenceTest.cpp - Splits from operands alone ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/SplitInference.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tp/Dialect/NN/NN.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

class InferSplit : public testing::Test {
protected:
  InferSplit() {
    context.loadDialect<func::FuncDialect, nn::NNDialect, TPDialect>();
    module = parseSourceString<ModuleOp>(R"mlir(
      tp.mesh @mesh(x = 4)
      func.func @main(%a: tensor<3x16xf32>, %w: tensor<8x16xf32>) {
        %0 = nn.reshape %a : tensor<3x16xf32> -> tensor<3x2x8xf32>
        %1 = nn.linear %a, %w : (tensor<3x16xf32>, tensor<8x16xf32>) -> tensor<3x8xf32>
        return
      }
    )mlir",
                                         &context);
  }

  ShardingAttr parse(StringRef dims) {
    return cast<ShardingAttr>(
        parseAttribute(("#tp.sharding<@mesh, " + dims + ">").str(), &context));
  }
  /// The placement of the first result of the op called `name`; null if there
  /// is no split.
  ShardingAttr infer(StringRef name, ArrayRef<ShardingAttr> operands) {
    ShardingAttr result;
    module->walk([&](ShardingRuleOpInterface op) {
      if (op->getName().getStringRef() != name)
        return;
      ShardingRule rule = op.getShardingRule();
      MeshOp mesh = *module->getOps<MeshOp>().begin();
      if (auto split = inferSplit(rule, mesh, operands))
        result = getResultSharding(rule, *split, 0);
    });
    return result;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(InferSplit, IgnoresUnknownOperands) {
  EXPECT_EQ(infer("nn.linear", {nullptr, parse("[{x}, {}]")}),
            parse("[{}, {x}]"));
  EXPECT_EQ(infer("nn.linear", {parse("[{x}, {}]"), nullptr}),
            parse("[{x}, {}]"));
}

TEST_F(InferSplit, NeedsOperandsThatFit) {
  EXPECT_EQ(infer("nn.linear", {parse("[{}, {x}]"), parse("[{}, {x}]")}),
            parse("[{}, {}], partial = {x: sum}"));
  EXPECT_FALSE(infer("nn.linear", {parse("[{x}, {}]"), parse("[{x}, {}]")}));
}

TEST_F(InferSplit, CutsAxesAtFactors) {
  EXPECT_EQ(infer("nn.reshape", {parse("[{}, {x}]")}),
            parse("[{}, {x:(1)2}, {x:(2)2}]"));
}

} // namespace
