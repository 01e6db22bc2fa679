//===- OneOpTest.cpp - Placements of one op, enumerated -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One op, its operands and its result placed in every way over a small mesh:
// what the propagation chooses costs what the cheapest of all ways to split the
// op costs, by the plans of what they redistribute.
//
//===----------------------------------------------------------------------===//

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Sharding/Propagation/Propagation.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <array>
#include <bitset>

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Axes of one dimension or factor, major to minor.
using Axes = std::vector<std::string>;

/// All ways to put some of `axes` on `count` lists, in any order.
std::vector<std::vector<Axes>> enumerateLists(llvm::ArrayRef<std::string> axes,
                                              size_t count) {
  std::vector<std::vector<Axes>> all = {std::vector<Axes>(count)};
  for (const std::string &axis : axes)
    for (size_t i = 0, e = all.size(); i < e; ++i)
      for (size_t list = 0; list < count; ++list)
        for (size_t place = 0; place <= all[i][list].size(); ++place) {
          std::vector<Axes> more = all[i];
          more[list].insert(more[list].begin() + place, axis);
          all.push_back(std::move(more));
        }
  return all;
}

class OneOp : public testing::Test {
protected:
  OneOp() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<func::FuncDialect, nn::NNDialect, TPDialect>();
  }

  static std::string print(llvm::ArrayRef<Axes> dims,
                           const Axes &partial = {}) {
    std::string text = "#tp.sharding<@mesh, [";
    for (auto [i, axes] : llvm::enumerate(dims))
      text += (i ? ", {" : "{") + llvm::join(axes, ", ") + "}";
    text += "]";
    if (!partial.empty())
      text += ", partial = {" + llvm::join(partial, ": sum, ") + ": sum}";
    return text + ">";
  }
  ShardingAttr parse(const std::string &text) {
    return cast<ShardingAttr>(parseAttribute(text, &context));
  }

  /// What the propagation finds for `text`.
  CommunicationCost propagate(const std::string &text,
                              const PropagationOptions &options) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    MeshOp mesh = *module->getOps<MeshOp>().begin();
    Propagation propagation(mesh, options);
    EXPECT_TRUE(
        succeeded(propagation.run({*module->getOps<func::FuncOp>().begin()})));
    return propagation.getCost();
  }

  /// The products (m k) · (k n) of all placements over `axes` of a mesh.
  void checkDots(const std::string &meshText, llvm::ArrayRef<std::string> axes,
                 std::array<int64_t, 3> sizes, bool oneShot,
                 int64_t latencyBytes);

  /// A reshape of all placements over `axes`, which consist of `atoms`.
  void checkReshapes(const std::string &meshText,
                     llvm::ArrayRef<std::string> axes,
                     llvm::ArrayRef<std::string> atoms,
                     llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to,
                     bool oneShot);

  MLIRContext context;
};

void OneOp::checkDots(const std::string &meshText,
                      llvm::ArrayRef<std::string> axes,
                      std::array<int64_t, 3> sizes, bool oneShot,
                      int64_t latencyBytes) {
  std::string head = "tp.mesh @mesh(" + meshText + ")\n";
  auto holder = parseSourceString<ModuleOp>(head, &context);
  ASSERT_TRUE(holder);
  MeshOp mesh = *holder->getOps<MeshOp>().begin();
  PropagationOptions options;
  options.latencyBytes = latencyBytes;
  options.redistributions.oneShot = oneShot;
  RedistributionPlanner planner(mesh, options.redistributions);
  auto [m, k, n] = sizes;
  auto getType = [&](int64_t rows, int64_t columns) {
    return RankedTensorType::get({rows, columns}, Float32Type::get(&context));
  };
  RankedTensorType types[] = {getType(m, k), getType(k, n), getType(m, n)};
  auto printType = [](RankedTensorType type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  };

  std::vector<std::pair<std::string, ShardingAttr>> placements;
  for (const auto &dims : enumerateLists(axes, 2))
    placements.push_back({print(dims), parse(print(dims))});
  // By factor: m, k, n.
  struct Way {
    ShardingAttr lhs, rhs, result;
  };
  std::vector<Way> ways;
  for (const auto &split : enumerateLists(axes, 3))
    ways.push_back({parse(print({split[0], split[1]})),
                    parse(print({split[1], split[2]})),
                    parse(print({split[0], split[2]}, split[1]))});

  unsigned numWorse = 0;
  for (const auto &[lhs, fromLhs] : placements)
    for (const auto &[rhs, fromRhs] : placements)
      for (const auto &[result, toResult] : placements) {
        CommunicationCost least = CommunicationCost::infinite();
        for (const Way &way : ways) {
          CommunicationCost cost =
              planner.getCost(fromLhs, way.lhs, types[0]) +
              planner.getCost(fromRhs, way.rhs, types[1]) +
              planner.getCost(way.result, toResult, types[2]);
          cost.volume =
              cost.bytes + latencyBytes * mesh.getNumRanks() * cost.collectives;
          least = std::min(least, cost);
        }
        std::string a = printType(types[0]), b = printType(types[1]),
                    c = printType(types[2]);
        CommunicationCost found = propagate(
            head + "func.func @f(%a: " + a + " {tp.sharding = " + lhs +
                "}, %b: " + b + " {tp.sharding = " + rhs + "}) -> (" + c +
                " {tp.sharding = " + result +
                "}) {\n  %c = nn.matmul %a, %b : (" + a + ", " + b + ") -> " +
                c + "\n  return %c : " + c + "\n}\n",
            options);
        found.work = least.work = 0;
        if (found == least)
          continue;
        EXPECT_LT(++numWorse, 4u) << "and so on";
        EXPECT_EQ(found.volume, least.volume)
            << lhs << " * " << rhs << " -> " << result << ", " << found.bytes
            << " bytes in " << found.collectives << ", least " << least.bytes
            << " in " << least.collectives;
        if (numWorse > 3)
          return;
      }
}

TEST_F(OneOp, DotsOverTwoDimensions) {
  std::string mesh = "x = 2, y = 2";
  checkDots(mesh, {"x", "y"}, {4, 8, 16}, /*oneShot=*/true, 0);
  checkDots(mesh, {"x", "y"}, {4, 8, 16}, /*oneShot=*/true, 1000);
  checkDots(mesh, {"x", "y"}, {4, 8, 16}, /*oneShot=*/false, 0);
}

TEST_F(OneOp, DotsOverDimensionsOfTwoSizes) {
  checkDots("x = 4, y = 2", {"x", "y"}, {8, 32, 16}, /*oneShot=*/true, 0);
}

TEST_F(OneOp, DotsOverPartsOfADimension) {
  checkDots("x = 4", {"x:(1)2", "x:(2)2"}, {8, 32, 16}, /*oneShot=*/true, 0);
}

/// A reshape computes nothing: between placements of its operand and its result
/// by which each rank has the same elements, in the same order, there is
/// nothing to do.
void OneOp::checkReshapes(const std::string &meshText,
                          llvm::ArrayRef<std::string> axes,
                          llvm::ArrayRef<std::string> atoms,
                          llvm::ArrayRef<int64_t> from,
                          llvm::ArrayRef<int64_t> to, bool oneShot) {
  std::string head = "tp.mesh @mesh(" + meshText + ")\n";
  auto holder = parseSourceString<ModuleOp>(head, &context);
  ASSERT_TRUE(holder);
  MeshOp mesh = *holder->getOps<MeshOp>().begin();
  PropagationOptions options;
  options.latencyBytes = 0;
  options.redistributions.oneShot = oneShot;
  RedistributionPlanner planner(mesh, options.redistributions);
  auto getType = [&](llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, Float32Type::get(&context));
  };
  // The places of the elements that each rank has; empty where sizes don't
  // divide.
  using Elements = std::vector<std::bitset<64>>;
  auto getElements = [&](llvm::ArrayRef<int64_t> shape,
                         ShardingAttr sharding) -> Elements {
    for (auto [size, list] : llvm::zip_equal(shape, sharding.getDims()))
      if (size % mesh.getAxesSize(list.getAxes()))
        return {};
    Elements all;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      TensorBlock block = getBlock(shape, sharding, mesh, rank);
      std::vector<int64_t> places = {0};
      for (auto [size, parts] : llvm::zip_equal(shape, block)) {
        std::vector<int64_t> next;
        for (int64_t place : places)
          for (Interval part : parts)
            for (int64_t i = 0; i < part.size; ++i)
              next.push_back(place * size + part.offset + i);
        places = std::move(next);
      }
      std::bitset<64> set;
      for (int64_t place : places)
        set.set(place);
      all.push_back(set);
    }
    return all;
  };
  std::vector<std::pair<Elements, ShardingAttr>> operands, results;
  for (const auto &dims : enumerateLists(atoms, from.size())) {
    ShardingAttr sharding = parse(print(dims));
    if (Elements elements = getElements(from, sharding); !elements.empty())
      operands.push_back({elements, sharding});
  }
  for (const auto &dims : enumerateLists(atoms, to.size())) {
    ShardingAttr sharding = parse(print(dims));
    if (Elements elements = getElements(to, sharding); !elements.empty())
      results.push_back({elements, sharding});
  }
  unsigned numWorse = 0;
  std::string a, b;
  llvm::raw_string_ostream(a) << getType(from);
  llvm::raw_string_ostream(b) << getType(to);
  for (const auto &dims : enumerateLists(axes, from.size()))
    for (const auto &resultDims : enumerateLists(axes, to.size())) {
      ShardingAttr have = parse(print(dims)), want = parse(print(resultDims));
      if (getElements(from, have).empty() || getElements(to, want).empty())
        continue;
      CommunicationCost least = CommunicationCost::infinite();
      for (const auto &[elements, operand] : operands)
        for (const auto &[others, result] : results)
          if (elements == others)
            least =
                std::min(least, planner.getCost(have, operand, getType(from)) +
                                    planner.getCost(result, want, getType(to)));
      CommunicationCost found = propagate(
          head + "func.func @f(%a: " + a + " {tp.sharding = " + print(dims) +
              "}) -> (" + b + " {tp.sharding = " + print(resultDims) +
              "}) {\n  %b = nn.reshape %a : " + a + " -> " + b +
              "\n  return %b : " + b + "\n}\n",
          options);
      if (found.bytes <= least.bytes)
        continue;
      EXPECT_EQ(found.bytes, least.bytes)
          << a << " " << print(dims) << " to " << b << " " << print(resultDims)
          << " over " << meshText;
      if (++numWorse > 3)
        return;
    }
}

TEST_F(OneOp, ReshapesOfPartsOfDimensions) {
  for (bool oneShot : {true, false}) {
    checkReshapes("y = 2, x = 4", {"x", "y"}, {"y", "x:(1)2", "x:(2)2"}, {4, 8},
                  {32}, oneShot);
    checkReshapes("y = 2, x = 4", {"x", "y"}, {"y", "x:(1)2", "x:(2)2"}, {32},
                  {4, 8}, oneShot);
    checkReshapes("x = 2, y = 4", {"x", "y"}, {"x", "y:(1)2", "y:(2)2"},
                  {2, 4, 4}, {8, 4}, oneShot);
    checkReshapes("x = 8", {"x"}, {"x:(1)2", "x:(2)2", "x:(4)2"}, {2, 2, 8},
                  {32}, oneShot);
  }
}

} // namespace
