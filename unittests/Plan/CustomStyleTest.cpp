//===- CustomStyleTest.cpp - A style of the user's own --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program that embeds tp-mlir does to have a style that PyTorch doesn't
// have: derive from Style, register it, and use its name in a plan. A plugin
// does the same (test/Embedding/consumer/style.cpp).
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tp/Plan/Plan.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

/// Splits every matrix of a module, however deep inside, along one dimension,
/// and replicates its outputs: FSDP's way of holding weights.
class ShardedWeights final : public Style {
public:
  StringRef getName() const override { return "ShardedWeights"; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    static const ArgumentSpec specs[] = {
        {"dim", ArgumentSpec::Type::Int, "0"},
        {"at_least", ArgumentSpec::Type::Int, "1"},
    };
    return specs;
  }
  unsigned getAspects() const override { return Parameters | Outputs; }

  LogicalResult verify(const Arguments &arguments,
                       const MeshGroup &) const override {
    if (arguments["at_least"].integer > 0)
      return success();
    return emitError(arguments["at_least"].loc) << "at_least must be positive";
  }

  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    ModuleOpInterface module = requests.getModule();
    const Argument &dim = arguments["dim"];
    bool found = false;
    module.walk([&](ParameterOpInterface parameter) {
      RankedTensorType type = parameter.getType();
      if (type.getRank() < 2 ||
          type.getNumElements() < arguments["at_least"].integer)
        return;
      found = true;
      requests.placeParameter(parameter, Placement::shard(dim.integer),
                              dim.loc);
    });
    if (!found)
      requests.reportError(arguments.getEntryLoc(),
                           requests.describeModule() + " has no matrix");
    for (unsigned i = 0; i < module->getNumResults(); ++i)
      requests.layoutOutput(i, Placement::replicate(), "output",
                            arguments.getEntryLoc());
  }
};

constexpr StringRef kModel = R"mlir(
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %r = nn.module "fc" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<4x8xf32>):
    %w = nn.parameter "fc.weight" : tensor<6x8xf32>
    %b = nn.parameter "fc.bias" : tensor<6xf32>
    %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
    %z = nn.add %y, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
    nn.yield %z : tensor<4x6xf32>
  } : (tensor<4x8xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
)mlir";

class CustomStyleTest : public testing::Test {
protected:
  CustomStyleTest()
      : handler(&context, [this](Diagnostic &diagnostic) {
          messages.push_back(diagnostic.str());
        }) {
    DialectRegistry registry;
    registerStyle<ShardedWeights>(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<func::FuncDialect, nn::NNDialect, TPDialect>();
    model = parseSourceString<ModuleOp>(kModel, &context);
  }

  LogicalResult check(StringRef text) {
    return success(
        succeeded(parsePlan(text, "plan.yaml", &context, plan.file)) &&
        succeeded(checkPlan(*model, plan)));
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> model;
  CheckedPlan plan;
  std::vector<std::string> messages;
  ScopedDiagnosticHandler handler;
};

TEST_F(CustomStyleTest, PlacesWhatItAsksFor) {
  ASSERT_TRUE(succeeded(
      check("mesh: {tp: 2}\nplan: {fc: {style: ShardedWeights, dim: -1}}\n")));
  ASSERT_EQ(plan.parameters.size(), 1u);
  auto &[fqn, layouts] = plan.parameters.front();
  EXPECT_EQ(fqn.getValue(), "fc.weight");
  EXPECT_EQ(layouts.front().over.placement, Placement::shard(1));
  ASSERT_EQ(plan.modules.size(), 1u);
  ASSERT_EQ(plan.modules[0].outputs[0].size(), 1u);
  EXPECT_EQ(plan.modules[0].outputs[0][0].reason,
            "plan.yaml:2:8: ShardedWeights output Replicate");
}

TEST_F(CustomStyleTest, ReportsLikeTheOthers) {
  EXPECT_TRUE(failed(check("mesh: {tp: 2}\nplan: {fc: {style: ShardedWeights, "
                           "at_least: 100}}\n")));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0], "'fc' has no matrix");
}

TEST_F(CustomStyleTest, IsSuggested) {
  EXPECT_TRUE(failed(check("mesh: {tp: 2}\nplan: {fc: ShardedWeight}\n")));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0],
            "unknown style 'ShardedWeight'; did you mean 'ShardedWeights'?");
}

/// Replaces a built-in style.
class WholeLinear final : public Style {
public:
  StringRef getName() const override { return "ColwiseParallel"; }
  ArrayRef<ArgumentSpec> getArguments() const override { return {}; }
  unsigned getAspects() const override { return 0; }
  void apply(const Arguments &, ModuleRequests &) const override {}
};

TEST(AddedStyles, BelongToOneContext) {
  DialectRegistry registry;
  registerStyle<ShardedWeights>(registry);
  registerStyle<WholeLinear>(registry);
  MLIRContext extended(registry), plain;
  EXPECT_TRUE(lookupStyle(&extended, "ShardedWeights"));
  EXPECT_FALSE(lookupStyle(&plain, "ShardedWeights"));
  EXPECT_EQ(getStyleNames(&extended).size(), getStyleNames(&plain).size() + 1);
  EXPECT_EQ(lookupStyle(&extended, "ColwiseParallel")->getAspects(), 0u);
  EXPECT_NE(lookupStyle(&plain, "ColwiseParallel")->getAspects(), 0u);
}

TEST(AddedStyles, AreAddedOnce) {
  DialectRegistry registry;
  registerStyle<ShardedWeights>(registry);
  MLIRContext context(registry);
  context.loadDialect<TPDialect>();
  size_t count = getStyleNames(&context).size();
  // This registry isn't a subset of the context's, so it is applied again.
  registerStyle<WholeLinear>(registry);
  context.appendDialectRegistry(registry);
  EXPECT_EQ(getStyleNames(&context).size(), count);
}

} // namespace
