//===- RedistributionTest.cpp - plans of redistributions, simulated -------===//
//
// Every rank holds a block of elements that know who they are and whose
// contributions they sum up. The planned steps, applied to the blocks of one
// placement, must give those of the other.
//
//===----------------------------------------------------------------------===//

#include "tp/Analysis/Redistribution.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tp;

namespace {

/// An element of the whole tensor: its index, and one bit per contribution that
/// is summed up in it.
struct Element {
  int64_t index;
  uint64_t contributions;
  bool operator==(const Element &other) const {
    return index == other.index && contributions == other.contributions;
  }
};

struct Block {
  SmallVector<int64_t> shape;
  std::vector<Element> elements;
  bool operator==(const Block &other) const {
    return shape == other.shape && elements == other.elements;
  }

  /// Elements before and from dimension `dim` on, as products of sizes.
  int64_t getOuter(int64_t dim) const {
    return std::accumulate(shape.begin(), shape.begin() + dim, int64_t(1),
                           std::multiplies<>());
  }
  int64_t getInner(int64_t dim) const {
    return std::accumulate(shape.begin() + dim, shape.end(), int64_t(1),
                           std::multiplies<>());
  }
};

/// Block `index` of `n` along `dim`.
Block slice(const Block &block, int64_t dim, int64_t index, int64_t n) {
  Block result{block.shape, {}};
  EXPECT_EQ(block.shape[dim] % n, 0);
  result.shape[dim] /= n;
  int64_t run = result.getInner(dim);
  for (int64_t outer = 0, e = block.getOuter(dim); outer < e; ++outer) {
    auto begin = block.elements.begin() + (outer * n + index) * run;
    result.elements.insert(result.elements.end(), begin, begin + run);
  }
  return result;
}

Block concatenate(ArrayRef<Block> blocks, int64_t dim) {
  Block result{blocks[0].shape, {}};
  result.shape[dim] *= blocks.size();
  int64_t run = blocks[0].getInner(dim);
  for (int64_t outer = 0, e = blocks[0].getOuter(dim); outer < e; ++outer)
    for (const Block &block : blocks) {
      auto begin = block.elements.begin() + outer * run;
      result.elements.insert(result.elements.end(), begin, begin + run);
    }
  return result;
}

/// Sums blocks up; no contribution may count twice.
Block reduce(ArrayRef<Block> blocks) {
  Block result = blocks[0];
  for (const Block &block : blocks.drop_front()) {
    EXPECT_EQ(block.shape, result.shape);
    for (auto [sum, element] :
         llvm::zip_equal(result.elements, block.elements)) {
      EXPECT_EQ(sum.index, element.index);
      EXPECT_EQ(sum.contributions & element.contributions, 0u);
      sum.contributions |= element.contributions;
    }
  }
  return result;
}

class Redistribution : public testing::Test {
protected:
  Redistribution() { context.loadDialect<TPDialect>(); }

  /// A mesh as in the IR: "a = 2, b = 3".
  void setMesh(StringRef axes) {
    module = parseSourceString<ModuleOp>(("tp.mesh @mesh(" + axes + ")").str(),
                                         &context);
    mesh = *module->getOps<MeshOp>().begin();
  }

  ShardingAttr parse(StringRef text) {
    return cast<ShardingAttr>(
        parseAttribute(("#tp.sharding<@mesh, " + text + ">").str(), &context));
  }

  /// Every placement of a tensor of `rank` dimensions: each of `axes` splits a
  /// dimension, is partial with one of two kinds, or replicates; axes on one
  /// dimension in every order.
  std::vector<ShardingAttr> getPlacements(int64_t rank,
                                          ArrayRef<AxisRefAttr> axes) {
    auto meshRef = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
    std::vector<ShardingAttr> all;
    SmallVector<AxisRefAttr> order(axes);
    llvm::sort(order,
               [](AxisRefAttr x, AxisRefAttr y) { return before(x, y); });
    do {
      std::vector<ShardingAttr> placed = {
          ShardingAttr::getReplicated(meshRef, rank)};
      for (AxisRefAttr axis : order)
        for (size_t i = 0, e = placed.size(); i < e; ++i) {
          for (int64_t dim = 0; dim < rank; ++dim)
            placed.push_back(placed[i].withShard(axis, dim));
          for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Max})
            placed.push_back(placed[i].withPartial(axis, kind));
        }
      for (ShardingAttr sharding : placed)
        if (!llvm::is_contained(all, sharding))
          all.push_back(sharding);
    } while (std::next_permutation(
        order.begin(), order.end(),
        [](AxisRefAttr x, AxisRefAttr y) { return before(x, y); }));
    return all;
  }

  SmallVector<AxisRefAttr> getAxes() {
    SmallVector<AxisRefAttr> axes;
    for (size_t i = 0; i < mesh.getNumAxes(); ++i)
      axes.push_back(AxisRefAttr::get(&context, mesh.getAxisName(i)));
    return axes;
  }

  /// What `rank` holds of a tensor whose contributions are those of `from`,
  /// when it is placed as `sharding`.
  Block getBlock(int64_t rank, ArrayRef<int64_t> shape, ShardingAttr from,
                 ShardingAttr sharding) {
    Block block{SmallVector<int64_t>(shape), {}};
    uint64_t contributions = 0;
    SmallVector<AxisRefAttr> all = getPartialAxes(from);
    SmallVector<AxisRefAttr> open = getPartialAxes(sharding);
    for (int64_t other = 0; other < mesh.getNumRanks(); ++other)
      if (mesh.getIndexAlong(other, open) == mesh.getIndexAlong(rank, open))
        contributions |= uint64_t(1) << mesh.getIndexAlong(other, all);
    for (int64_t i = 0, e = block.getInner(0); i < e; ++i)
      block.elements.push_back({i, contributions});
    for (auto [dim, axes] : llvm::enumerate(sharding.getDims()))
      block = slice(block, dim, mesh.getIndexAlong(rank, axes.getAxes()),
                    mesh.getAxesSize(axes.getAxes()));
    return block;
  }

  std::vector<Block> getBlocks(ArrayRef<int64_t> shape, ShardingAttr from,
                               ShardingAttr sharding) {
    std::vector<Block> blocks;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      blocks.push_back(getBlock(rank, shape, from, sharding));
    return blocks;
  }

  std::vector<Block> apply(const RedistributionStep &step,
                           std::vector<Block> blocks) {
    std::vector<Block> after(blocks.size());
    int64_t n = mesh.getAxesSize(step.axes);
    for (const SmallVector<int64_t> &group : mesh.getGroups(step.axes)) {
      std::vector<Block> members;
      for (int64_t rank : group)
        members.push_back(blocks[rank]);
      for (auto [position, rank] : llvm::enumerate(group)) {
        switch (step.kind) {
        case RedistributionStep::LocalSlice:
          after[rank] = slice(blocks[rank], step.dim, position, n);
          break;
        case RedistributionStep::AllGather:
          after[rank] = concatenate(members, step.dim);
          break;
        case RedistributionStep::AllReduce:
          after[rank] = reduce(members);
          break;
        case RedistributionStep::ReduceScatter:
          after[rank] = slice(reduce(members), step.dim, position, n);
          break;
        case RedistributionStep::AllToAll: {
          std::vector<Block> pieces;
          for (const Block &member : members)
            pieces.push_back(slice(member, step.dim, position, n));
          after[rank] = concatenate(pieces, step.concatDim);
          break;
        }
        }
      }
    }
    return after;
  }

  FailureOr<SmallVector<RedistributionStep>> plan(ShardingAttr from,
                                                  ShardingAttr to) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    return planRedistribution(from, to, mesh,
                              [&] { return emitError(mesh.getLoc()); });
  }

  /// All pairs of `placements` of a tensor of `shape`.
  void checkAllPairs(ArrayRef<int64_t> shape,
                     ArrayRef<ShardingAttr> placements) {
    for (ShardingAttr from : placements)
      for (ShardingAttr to : placements) {
        SCOPED_TRACE(printPair(from, to));
        auto steps = plan(from, to);
        bool reachable = llvm::all_of(to.getPartial(), [&](PartialAttr p) {
          return mesh.getAxisSize(p.getAxis()) == 1 ||
                 llvm::is_contained(from.getPartial(), p);
        });
        ASSERT_EQ(succeeded(steps), reachable);
        if (!reachable)
          continue;
        if (from == to) {
          EXPECT_TRUE(steps->empty());
        }
        std::vector<Block> blocks = getBlocks(shape, from, from);
        for (const RedistributionStep &step : *steps) {
          blocks = apply(step, std::move(blocks));
          ASSERT_TRUE(step.result);
          ASSERT_EQ(blocks, getBlocks(shape, from, step.result));
        }
        ASSERT_EQ(blocks, getBlocks(shape, from, to));
      }
  }

  std::string printPair(ShardingAttr from, ShardingAttr to) {
    std::string text;
    llvm::raw_string_ostream(text) << from << " to " << to;
    return text;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  MeshOp mesh;
  std::string message;

private:
  static bool before(AxisRefAttr x, AxisRefAttr y) {
    return std::make_pair(x.getName(), x.getPreSize()) <
           std::make_pair(y.getName(), y.getPreSize());
  }

  SmallVector<AxisRefAttr> getPartialAxes(ShardingAttr sharding) {
    return llvm::map_to_vector(sharding.getPartial(),
                               [](PartialAttr p) { return p.getAxis(); });
  }
};

TEST_F(Redistribution, AllPairsOverOneDimension) {
  for (StringRef axes : {"a = 1", "a = 2", "a = 3", "a = 4"}) {
    setMesh(axes);
    for (int64_t rank = 0; rank <= 3; ++rank)
      checkAllPairs(SmallVector<int64_t>(rank, 12),
                    getPlacements(rank, getAxes()));
  }
}

TEST_F(Redistribution, AllPairsOverTwoDimensions) {
  for (StringRef axes : {"a = 2, b = 2", "a = 2, b = 3", "a = 2, b = 1"}) {
    setMesh(axes);
    for (int64_t rank = 0; rank <= 3; ++rank)
      checkAllPairs(SmallVector<int64_t>(rank, mesh.getNumRanks()),
                    getPlacements(rank, getAxes()));
  }
}

TEST_F(Redistribution, AllPairsOverThreeDimensions) {
  setMesh("a = 2, b = 2, c = 2");
  checkAllPairs({8}, getPlacements(1, getAxes()));
}

TEST_F(Redistribution, AllPairsOverPartsOfOneDimension) {
  setMesh("a = 4");
  AxisRefAttr whole = AxisRefAttr::get(&context, "a");
  AxisRefAttr major = AxisRefAttr::get(&context, "a", 1, 2);
  AxisRefAttr minor = AxisRefAttr::get(&context, "a", 2, 2);
  std::vector<ShardingAttr> placements = getPlacements(2, {major, minor});
  for (ShardingAttr sharding : getPlacements(2, {whole}))
    placements.push_back(sharding);
  checkAllPairs({4, 8}, placements);
}

TEST_F(Redistribution, TakesTheCheapestCollective) {
  setMesh("a = 2, b = 4");
  struct {
    const char *from, *to;
    std::vector<RedistributionStep::Kind> kinds;
  } table[] = {
      {"[{}, {}]",
       "[{a}, {b}]",
       {RedistributionStep::LocalSlice, RedistributionStep::LocalSlice}},
      {"[{a}, {}]", "[{}, {a}]", {RedistributionStep::AllToAll}},
      {"[{a}, {}]", "[{}, {}]", {RedistributionStep::AllGather}},
      {"[{a, b}, {}]", "[{}, {}]", {RedistributionStep::AllGather}},
      {"[{a, b}, {}]", "[{a}, {b}]", {RedistributionStep::AllToAll}},
      {"[{}, {}], partial = {b: sum}",
       "[{}, {b}]",
       {RedistributionStep::ReduceScatter}},
      {"[{}, {}], partial = {b: sum}",
       "[{}, {}]",
       {RedistributionStep::AllReduce}},
      {"[{}, {}], partial = {a: sum, b: sum}",
       "[{}, {}]",
       {RedistributionStep::AllReduce}},
      // The slice makes the reduction smaller.
      {"[{}, {}], partial = {b: sum}",
       "[{a}, {}]",
       {RedistributionStep::LocalSlice, RedistributionStep::AllReduce}},
  };
  for (auto &row : table) {
    SCOPED_TRACE(std::string(row.from) + " to " + row.to);
    auto steps = plan(parse(row.from), parse(row.to));
    ASSERT_TRUE(succeeded(steps));
    std::vector<RedistributionStep::Kind> kinds;
    for (const RedistributionStep &step : *steps)
      kinds.push_back(step.kind);
    EXPECT_EQ(kinds, row.kinds);
  }
}

TEST_F(Redistribution, NothingBecomesPartial) {
  setMesh("a = 2, b = 4");
  EXPECT_TRUE(
      failed(plan(parse("[{a}, {}]"), parse("[{}, {}], partial = {b: sum}"))));
  EXPECT_EQ(message, "can't redistribute from (Shard(0), Replicate) to "
                     "(Replicate, Partial(sum)): no value becomes Partial by a "
                     "redistribution");
}

TEST_F(Redistribution, CostOverOneMeshDimension) {
  setMesh("a = 4");
  struct {
    const char *from, *to;
    double bytes;
    int64_t collectives;
  } table[] = {
      {"[{}, {}]", "[{}, {}]", 0, 0},
      {"[{}, {}]", "[{a}, {}]", 0, 0},
      {"[{a}, {}]", "[{a}, {}]", 0, 0},
      {"[{a}, {}]", "[{}, {}]", 48, 1},
      {"[{a}, {}]", "[{}, {a}]", 12, 1},
      {"[{}, {}], partial = {a: sum}", "[{}, {}]", 96, 1},
      {"[{}, {}], partial = {a: sum}", "[{a}, {}]", 48, 1},
      {"[{}, {}], partial = {a: sum}", "[{}, {}], partial = {a: sum}", 0, 0},
  };
  for (auto &row : table) {
    SCOPED_TRACE(std::string(row.from) + " to " + row.to);
    auto cost = getAxisCost(parse(row.from), parse(row.to), "a", 4, 64);
    ASSERT_TRUE(cost);
    EXPECT_EQ(cost->bytes, row.bytes);
    EXPECT_EQ(cost->collectives, row.collectives);
  }
  EXPECT_FALSE(getAxisCost(parse("[{}, {}]"),
                           parse("[{}, {}], partial = {a: sum}"), "a", 4, 64));
  EXPECT_FALSE(getAxisCost(parse("[{}, {}], partial = {a: max}"),
                           parse("[{}, {}], partial = {a: sum}"), "a", 4, 64));
}

} // namespace
