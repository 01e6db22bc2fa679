//===- ShardingRuleTest.cpp - einsum, elementwise and reshape rules -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tp;

namespace {

class Rules : public testing::Test {
protected:
  Rules() {
    context.loadDialect<TPDialect>();
    context.allowUnregisteredDialects();
  }

  /// An op with these operand and result types, "(tensor<2xf32>) -> …".
  Operation *getOp(StringRef signature) {
    StringRef types = signature.split("->").first.trim();
    types = types.drop_front().drop_back();
    std::string operands;
    if (!types.empty()) {
      SmallVector<StringRef> list;
      types.split(list, ", ");
      for (size_t i = 0; i < list.size(); ++i)
        operands += (i ? ", %0#" : "%0#") + std::to_string(i);
      operands = "%0:" + std::to_string(list.size()) +
                 " = \"test.source\"() : () -> (" + types.str() +
                 ")\n\"test.op\"(" + operands + ") : ";
    } else {
      operands = "\"test.op\"() : ";
    }
    module = parseSourceString<ModuleOp>(operands + signature.str(), &context);
    return &module->getBody()->back();
  }

  static std::string print(const ShardingRule &rule) {
    std::string text;
    llvm::raw_string_ostream os(text);
    rule.print(os);
    return text;
  }

  static std::string getShape(ArrayRef<int64_t> shape) {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + "f32>";
  }

  ShardingRule getReshape(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
    return ShardingRule::reshape(
        getOp("(" + getShape(from) + ") -> " + getShape(to)));
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

TEST_F(Rules, Einsum) {
  struct {
    const char *spec, *signature, *rule;
  } table[] = {
      {"(b.. k, n k) -> (b.. n)",
       "(tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>",
       "([0][1][3], [2][3]) -> ([0][1][2]) {0=2, 1=8, 2=32, 3=16} "
       "reduction={3}"},
      // An empty group.
      {"(b.. k, n k) -> (b.. n)",
       "(tensor<16xf32>, tensor<32x16xf32>) -> tensor<32xf32>",
       "([1], [0][1]) -> ([0]) {0=32, 1=16} reduction={1}"},
      // A group is aligned at the right; size 1 and missing dimensions
      // correspond to nothing, on either side.
      {"(b.. m k, b.. k n) -> (b.. m n)",
       "(tensor<2x1x4x6xf32>, tensor<3x6x5xf32>) -> tensor<2x3x4x5xf32>",
       "([0][_][2][4], [1][4][3]) -> ([0][1][2][3]) {0=2, 1=3, 2=4, 3=5, 4=6} "
       "reduction={4}"},
      // A batch dimension of size 1 everywhere is one of its own.
      {"(b.. m k, b.. k n) -> (b.. m n)",
       "(tensor<1x4x6xf32>, tensor<1x6x5xf32>) -> tensor<1x4x5xf32>",
       "([3][0][2], [3][2][1]) -> ([3][0][1]) {0=4, 1=5, 2=6, 3=1} "
       "reduction={2}"},
      // A product: the major factor is another tensor's dimension.
      {"([h g] d, h d) -> ([h g])",
       "(tensor<12x8xf32>, tensor<4x8xf32>) -> tensor<12xf32>",
       "([1*2][0], [1][0]) -> ([1*2]) {0=8, 1=4, 2=3} reduction={0}"},
      {"(a, 1) -> (a 1)", "(tensor<4xf32>, tensor<1xf32>) -> tensor<4x1xf32>",
       "([0], [_]) -> ([0][_]) {0=4}"},
      // Factors of results come first, in order.
      {"(j i) -> (i j)", "(tensor<3x2xf32>) -> tensor<2x3xf32>",
       "([1][0]) -> ([0][1]) {0=2, 1=3}"},
      {"(i) -> ()", "(tensor<3xf32>) -> tensor<f32>",
       "([0]) -> () {0=3} reduction={0}"},
      // Booleans have no sum.
      {"(i, v d) -> (i d)", "(tensor<3xi64>, tensor<6x2xi1>) -> tensor<3x2xi1>",
       "([0], [2][1]) -> ([0][1]) {0=3, 1=2, 2=6} whole={2}"},
  };
  for (auto &row : table) {
    SCOPED_TRACE(row.signature);
    EXPECT_EQ(print(ShardingRule::einsum(getOp(row.signature), row.spec)),
              row.rule);
  }
}

TEST_F(Rules, EinsumSkipsAbsentOperands) {
  Operation *op = getOp("(tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>");
  EXPECT_EQ(print(ShardingRule::einsum(op, "(b d, b, d) -> (b d)",
                                       {true, false, true})),
            "([0][1], [1]) -> ([0][1]) {0=4, 1=8}");
}

TEST_F(Rules, Modifiers) {
  Operation *op =
      getOp("(tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>");
  auto rule = [&] { return ShardingRule::einsum(op, "(m k, n k) -> (m n)"); };
  EXPECT_EQ(print(rule().whole("k")),
            "([0][2], [1][2]) -> ([0][1]) {0=4, 1=6, 2=8} whole={2}");
  EXPECT_EQ(print(rule().wholeOperandDim(1, 1)),
            "([0][2], [1][2]) -> ([0][1]) {0=4, 1=6, 2=8} whole={2}");
  EXPECT_EQ(print(rule().wholeResultDim(0)),
            "([0][2], [1][2]) -> ([0][1]) {0=4, 1=6, 2=8} reduction={2} "
            "whole={0}");
  EXPECT_EQ(print(rule().linear({{0}, {1}})),
            "([0][2], [1][2]) -> ([0][1]) {0=4, 1=6, 2=8} reduction={2} "
            "linear={{0}, {1}}");
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

TEST_F(Rules, Elementwise) {
  struct {
    const char *signature, *rule;
  } table[] = {
      {"(tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>",
       "([0][1], [0][1]) -> ([0][1]) {0=2, 1=4}"},
      {"(tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>",
       "([0][1], [1]) -> ([0][1]) {0=2, 1=4}"},
      {"(tensor<2x1xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>",
       "([0][_], [_][1]) -> ([0][1]) {0=2, 1=4}"},
      {"(tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>",
       "([0][1], ) -> ([0][1]) {0=1, 1=4}"},
      {"(tensor<f32>, tensor<f32>) -> tensor<f32>", "(, ) -> () {}"},
      {"(tensor<0x3xf32>, tensor<3xf32>) -> tensor<0x3xf32>",
       "([0][1], [1]) -> ([0][1]) {0=0, 1=3}"},
  };
  for (auto &row : table) {
    SCOPED_TRACE(row.signature);
    EXPECT_EQ(print(ShardingRule::elementwise(getOp(row.signature))), row.rule);
  }
}

TEST_F(Rules, Replicated) {
  EXPECT_EQ(print(ShardingRule::replicated(
                getOp("(tensor<2x4xf32>, tensor<f32>) -> tensor<8xf32>"))),
            "([_][_], ) -> ([_]) {}");
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

TEST_F(Rules, Reshape) {
  struct {
    std::vector<int64_t> from, to;
    const char *rule;
  } table[] = {
      {{4, 6}, {4, 6}, "([0][1]) -> ([0][1]) {0=4, 1=6}"},
      // Split and merge.
      {{2, 12}, {2, 4, 3}, "([0][1*2]) -> ([0][1][2]) {0=2, 1=4, 2=3}"},
      {{2, 4, 3}, {8, 3}, "([0][1][2]) -> ([0*1][2]) {0=2, 1=4, 2=3}"},
      {{6, 4},
       {2, 3, 2, 2},
       "([0*1][2*3]) -> ([0][1][2][3]) {0=2, 1=3, 2=2, 3=2}"},
      // Dimensions that overlap: 4·6 = 8·3, the refinement is 4·2·3.
      {{4, 6}, {8, 3}, "([0][1*2]) -> ([0*1][2]) {0=4, 1=2, 2=3}"},
      // Dimensions of size 1 correspond to nothing.
      {{1, 4}, {4, 1}, "([_][0]) -> ([0][_]) {0=4}"},
      {{2, 1, 3}, {1, 2, 3, 1}, "([0][_][1]) -> ([_][0][1][_]) {0=2, 1=3}"},
      {{1, 1}, {}, "([_][_]) -> () {}"},
      {{}, {1}, "() -> ([_]) {}"},
      {{}, {}, "() -> () {}"},
      // Coprime sizes face each other: they can't be split, what is around can.
      {{2, 3},
       {3, 2},
       "([1][0]) -> ([3][2]) {0=3, 1=2, 2=2, 3=3} whole={0, 1, 2, 3}"},
      // A common divisor that isn't the whole of either side.
      {{2, 6},
       {3, 4},
       "([2][1*0]) -> ([4][3*0]) {0=2, 1=3, 2=2, 3=2, 4=3} whole={1, 2, 3, 4}"},
      {{4, 3, 10},
       {4, 5, 6},
       "([0][3][2*1]) -> ([0][5][4*1]) {0=4, 1=2, 2=5, 3=3, 4=3, 5=5} "
       "whole={2, 3, 4, 5}"},
      {{0, 3}, {3, 0, 2}, "([_][_]) -> ([_][_][_]) {}"},
  };
  for (auto &row : table) {
    std::string rule = print(getReshape(row.from, row.to));
    SCOPED_TRACE(getShape(row.from) + " to " + getShape(row.to));
    EXPECT_EQ(rule, row.rule);
  }
}

/// The elements of rank `index`'s block in row-major order.
std::vector<int64_t> getElements(ArrayRef<int64_t> shape, ShardingAttr sharding,
                                 MeshOp mesh, int64_t rank) {
  std::vector<int64_t> elements;
  int64_t total = std::accumulate(shape.begin(), shape.end(), int64_t(1),
                                  std::multiplies<>());
  for (int64_t element = 0; element < total; ++element) {
    bool mine = true;
    int64_t rest = element;
    for (int64_t dim = shape.size(); dim-- > 0; rest /= shape[dim]) {
      AxisListAttr list = sharding.getDims()[dim];
      ArrayRef<AxisRefAttr> axes = list.getAxes();
      // The segment that the index is in, and where it stands there.
      int64_t index = rest % shape[dim], size = shape[dim];
      for (int64_t segment : list.getSegments()) {
        size = segment;
        if (index < segment)
          break;
        index -= segment;
      }
      int64_t block = size / mesh.getAxesSize(axes);
      mine &= index / block == mesh.getIndexAlong(rank, axes);
    }
    if (mine)
      elements.push_back(element);
  }
  return elements;
}

/// Whichever way the rule lets a reshape be split, a rank's block of the result
/// is its block of the operand, reshaped.
TEST_F(Rules, ReshapeIsSound) {
  const std::vector<std::vector<int64_t>> shapes = {
      {24},       {2, 12},   {12, 2},      {4, 6},    {6, 4},      {3, 8},
      {8, 3},     {2, 3, 4}, {4, 3, 2},    {2, 2, 6}, {1, 24},     {24, 1},
      {2, 1, 12}, {6, 2, 2}, {2, 2, 2, 3}, {3, 2, 4}, {2, 3, 2, 2}};
  OwningOpRef<ModuleOp> holder =
      parseSourceString<ModuleOp>("tp.mesh @mesh(a = 2, b = 2)", &context);
  MeshOp mesh = *holder->getOps<MeshOp>().begin();
  AxisRefAttr a = AxisRefAttr::get(&context, "a");
  AxisRefAttr b = AxisRefAttr::get(&context, "b");
  int64_t numChecked = 0;
  auto check = [&](const ShardingRule &rule, const OpSplit &split,
                   ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
    ShardingAttr operand = getOperandSharding(rule, split, 0);
    ShardingAttr result = getResultSharding(rule, split, 0);
    if (!operand || !result)
      return;
    ++numChecked;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      ASSERT_EQ(getElements(from, operand, mesh, rank),
                getElements(to, result, mesh, rank));
  };
  for (const auto &from : shapes)
    for (const auto &to : shapes) {
      ShardingRule rule = getReshape(from, to);
      SCOPED_TRACE(getShape(from) + " to " + getShape(to) + ": " + print(rule));
      for (unsigned i = 0; i < rule.factors.size(); ++i)
        for (unsigned j = 0; j < rule.factors.size(); ++j) {
          OpSplit split;
          split.mesh = mesh;
          split.factorAxes.resize(rule.factors.size());
          split.factorSegments.resize(rule.factors.size());
          split.factorAxes[i].push_back(a);
          split.factorAxes[j].push_back(b);
          bool even = llvm::all_of(
              llvm::zip(rule.factors, split.factorAxes), [&](auto item) {
                auto &[factor, axes] = item;
                return axes.empty() ||
                       (factor.kind == FactorKind::Parallel &&
                        factor.size % mesh.getAxesSize(axes) == 0);
              });
          if (even)
            check(rule, split, from, to);
        }
    }
  EXPECT_GT(numChecked, 100);
}

} // namespace
