//===- RankClassesTest.cpp - Classes of ranks -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/RankClasses.h"
#include "mlir/Parser/Parser.h"
#include "tp/Sharding/Cost/CostModel.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

using Ranks = SmallVector<SmallVector<int64_t>>;

class RankClassesTest : public testing::Test {
protected:
  RankClassesTest() {
    context.loadDialect<TPDialect, func::FuncDialect>();
    machine.links = {{"inner", 4, 1e-6, 4e9, LinkAlgorithm::Ring, {}},
                     {"outer", 0, 1e-5, 1e9, LinkAlgorithm::Ring, {}}};
  }

  /// Parses a function over `axes`, such as "dp = 2, tp = 4".
  void parse(StringRef axes, StringRef body) {
    std::string text = "tp.mesh @mesh(" + axes.str() + ")\nfunc.func @main(" +
                       body.str() + "\n  return\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    function = *module->getOps<func::FuncOp>().begin();
    mesh = *module->getOps<MeshOp>().begin();
    ranks = llvm::to_vector(llvm::seq(mesh.getNumRanks()));
  }

  AxisListAttr getAxes(ArrayRef<StringRef> names) {
    return AxisListAttr::get(&context,
                             llvm::map_to_vector(names, [&](StringRef name) {
                               return AxisRefAttr::get(&context, name);
                             }));
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  MeshOp mesh;
  SmallVector<int64_t> ranks;
  Machine machine;
};

TEST_F(RankClassesTest, Blocks) {
  parse("dp = 2, tp = 4", ") {");
  RankClasses classes(mesh);
  EXPECT_EQ(classes.size(), 1u);
  classes.splitByBlock(8, getAxes({"tp"}));
  EXPECT_EQ(classes.size(), 1u);
  classes.splitByBlock(3, getAxes({"tp"}));
  EXPECT_EQ(classes.getRanks(), (Ranks{{0, 1, 2, 4, 5, 6}, {3, 7}}));
  classes.splitByBlock(1, getAxes({"dp"}));
  EXPECT_EQ(classes.getRanks(), (Ranks{{0, 1, 2}, {3}, {4, 5, 6}, {7}}));
  EXPECT_EQ(classes.getClass(6), 2u);
  EXPECT_EQ(classes.getFirst(2), 4);
}

TEST_F(RankClassesTest, Peers) {
  parse("dp = 2, tp = 4", ") {");
  // Rank 3 alone is different; then who meets it over tp, and who over dp.
  auto split = [&](ArrayRef<Peers> peers) {
    RankClasses classes(mesh);
    SmallVector<int64_t> kinds(8, 0);
    kinds[3] = 1;
    classes.split(ranks, kinds, [&](int64_t rank) { return rank == 3; });
    classes.splitByPeers(peers);
    return classes.getRanks();
  };
  EXPECT_EQ(split({}), (Ranks{{0, 1, 2, 4, 5, 6, 7}, {3}}));
  EXPECT_EQ(split({{getAxes({"tp"}), {}}}),
            (Ranks{{0, 1, 2}, {3}, {4, 5, 6, 7}}));
  EXPECT_EQ(split({{getAxes({"tp"}), {}}, {getAxes({"dp"}), {}}}),
            (Ranks{{0, 1, 2}, {3}, {4, 5, 6}, {7}}));
  EXPECT_EQ(split({{getAxes({"tp"}), {0, 3}}}),
            (Ranks{{0, 1, 2}, {3}, {4, 5, 6, 7}}));
  EXPECT_EQ(split({{getAxes({"tp"}), {0, 1}}}),
            (Ranks{{0, 1, 2, 4, 5, 6, 7}, {3}}));
}

/// What is asked for one rank of a class is true of all.
TEST_F(RankClassesTest, CollectivesCostTheSameInAClass) {
  struct {
    StringRef axes;
    SmallVector<int64_t> devices;
  } meshes[] = {{"dp = 8, tp = 4", {}},
                {"dp = 8, tp = 3", {}},
                {"dp = 3, tp = 5", {}},
                {"dp = 2, tp = 3", {5, 3, 0, 2, 4, 1}}};
  for (auto &[axes, devices] : meshes) {
    parse(axes, R"(%x: tensor<10x7xf32>) {
    %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<10x7xf32>
    %1 = tp.all_reduce sum %x over @mesh {dp} : tensor<10x7xf32>
    %2 = tp.all_reduce sum %x over @mesh {dp, tp} : tensor<10x7xf32>
    %3 = tp.broadcast %x root 1 over @mesh {tp} : tensor<10x7xf32>
    %4 = tp.broadcast %x root 0 over @mesh {dp, tp} : tensor<10x7xf32>)");
    if (!devices.empty())
      mesh.setDevices(ArrayRef<int64_t>(devices));
    CostModel model(machine, mesh);
    for (auto op : function.getOps<CollectiveOpInterface>()) {
      RankClasses classes(mesh);
      model.splitByCost(classes, op, ranks);
      EXPECT_LT(classes.size(), ranks.size()) << axes.str();
      for (int64_t rank : ranks) {
        int64_t first = classes.getFirst(classes.getClass(rank));
        EXPECT_EQ(op.getReceivedBytes(rank, mesh),
                  op.getReceivedBytes(first, mesh));
        EXPECT_EQ(model.getSeconds(op, rank), model.getSeconds(op, first))
            << axes.str() << ", rank " << rank;
      }
    }
  }
}

TEST_F(RankClassesTest, EqualCollectivesHaveOneNumber) {
  parse("dp = 2, tp = 4", R"(%x: tensor<8xf32>, %y: tensor<8xf32>) {
    %0 = tp.all_reduce sum %x over @mesh {tp} {fqn = "a"} : tensor<8xf32>
    %1 = tp.all_reduce sum %y over @mesh {tp} {fqn = "b", reason = "r"} : tensor<8xf32>
    %2 = tp.all_reduce max %y over @mesh {tp} {fqn = "b"} : tensor<8xf32>
    %3 = tp.all_reduce sum %y over @mesh {dp} {fqn = "b"} : tensor<8xf32>)");
  CollectiveInterner interner;
  SmallVector<unsigned> numbers;
  for (auto op : function.getOps<CollectiveOpInterface>())
    numbers.push_back(interner.insert(op).first);
  EXPECT_EQ(numbers, (SmallVector<unsigned>{0, 0, 1, 2}));
}

} // namespace
