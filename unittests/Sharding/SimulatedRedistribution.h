//===- SimulatedRedistribution.h - Executed redistributions -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every rank holds a block of elements that know who they are and whose
// contributions they sum up. The planned steps, applied to the blocks of one
// placement, must give those of the other, and move what the plan says.
//
//===----------------------------------------------------------------------===//

#ifndef TP_UNITTESTS_SHARDING_SIMULATEDREDISTRIBUTION_H
#define TP_UNITTESTS_SHARDING_SIMULATEDREDISTRIBUTION_H

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <map>
#include <numeric>

namespace mlir::tp::test {

/// An element of the whole tensor: its index, and one bit per contribution that
/// is summed up in it.
struct Element {
  int64_t index;
  uint64_t contributions;
  bool operator==(const Element &other) const {
    return index == other.index && contributions == other.contributions;
  }
};

struct Held {
  SmallVector<int64_t> shape;
  std::vector<Element> elements;
  bool operator==(const Held &other) const {
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

/// torch.chunk: chunk `index` of `n` of [begin, end).
inline std::pair<int64_t, int64_t> chunk(std::pair<int64_t, int64_t> range,
                                         int64_t n, int64_t index) {
  auto [begin, end] = range;
  int64_t size = (end - begin + n - 1) / n;
  return {std::min(begin + index * size, end),
          std::min(begin + (index + 1) * size, end)};
}

/// The elements [begin, end) along `dim`.
inline Held slice(const Held &block, int64_t dim,
                  std::pair<int64_t, int64_t> range) {
  Held result{block.shape, {}};
  result.shape[dim] = range.second - range.first;
  int64_t stride = block.getInner(dim + 1), run = block.getInner(dim);
  for (int64_t outer = 0, e = block.getOuter(dim); outer < e; ++outer) {
    auto begin = block.elements.begin() + outer * run;
    result.elements.insert(result.elements.end(), begin + range.first * stride,
                           begin + range.second * stride);
  }
  return result;
}

inline Held concatenate(ArrayRef<Held> blocks, int64_t dim) {
  Held result{blocks[0].shape, {}};
  result.shape[dim] = 0;
  for (const Held &block : blocks)
    result.shape[dim] += block.shape[dim];
  for (int64_t outer = 0, e = blocks[0].getOuter(dim); outer < e; ++outer)
    for (const Held &block : blocks) {
      int64_t run = block.getInner(dim);
      auto begin = block.elements.begin() + outer * run;
      result.elements.insert(result.elements.end(), begin, begin + run);
    }
  return result;
}

/// Sums blocks up; no contribution may count twice.
inline Held reduce(ArrayRef<Held> blocks) {
  Held result = blocks[0];
  for (const Held &block : blocks.drop_front()) {
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
                                          ArrayRef<AxisRefAttr> axes,
                                          bool withPartial = true) {
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
          if (!withPartial)
            continue;
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
  Held getBlock(int64_t rank, ArrayRef<int64_t> shape, ShardingAttr from,
                ShardingAttr sharding) {
    Held block{SmallVector<int64_t>(shape), {}};
    uint64_t contributions = 0;
    SmallVector<AxisRefAttr> all = getPartialAxes(from);
    SmallVector<AxisRefAttr> open = getPartialAxes(sharding);
    for (int64_t other = 0; other < mesh.getNumRanks(); ++other)
      if (mesh.getIndexAlong(other, open) == mesh.getIndexAlong(rank, open))
        contributions |= uint64_t(1) << mesh.getIndexAlong(other, all);
    for (int64_t i = 0, e = block.getInner(0); i < e; ++i)
      block.elements.push_back({i, contributions});
    for (auto [dim, axes] : llvm::enumerate(sharding.getDims())) {
      block = cut(block, dim, axes.getAxes(), axes.getSegments(), rank);
    }
    return block;
  }

  /// The part of each of `segments` that `axes` give `rank`; of all where there
  /// are none.
  Held cut(const Held &block, int64_t dim, ArrayRef<AxisRefAttr> axes,
           ArrayRef<int64_t> segments, int64_t rank) {
    std::vector<Held> pieces;
    int64_t begin = 0, size = block.shape[dim];
    for (int64_t segment : segments.empty() ? ArrayRef(size) : segments) {
      pieces.push_back(
          slice(block, dim, getRange(axes, {begin, begin + segment}, rank)));
      begin += segment;
    }
    EXPECT_EQ(begin, size);
    return concatenate(pieces, dim);
  }

  std::pair<int64_t, int64_t> getRange(ArrayRef<AxisRefAttr> axes,
                                       std::pair<int64_t, int64_t> whole,
                                       int64_t rank) {
    for (AxisRefAttr axis : axes)
      whole =
          chunk(whole, mesh.getAxisSize(axis), mesh.getIndexAlong(rank, axis));
    return whole;
  }

  std::vector<Held> getBlocks(ArrayRef<int64_t> shape, ShardingAttr from,
                              ShardingAttr sharding) {
    std::vector<Held> blocks;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      blocks.push_back(getBlock(rank, shape, from, sharding));
    return blocks;
  }

  /// Applies a step, and counts the elements that each rank receives.
  std::vector<Held> apply(const RedistributionStep &step,
                          ArrayRef<int64_t> shape,
                          const std::vector<Held> &blocks,
                          std::vector<int64_t> &received) {
    std::vector<Held> after(blocks.size());
    for (const SmallVector<int64_t> &group : mesh.getGroups(step.axes)) {
      int64_t n = group.size();
      std::vector<Held> members;
      for (int64_t rank : group)
        members.push_back(blocks[rank]);
      for (auto [position, rank] : llvm::enumerate(group)) {
        Held &result = after[rank];
        auto own = [&](const Held &whole) {
          return getRange(step.axes, {0, whole.shape[step.dim]}, rank);
        };
        switch (step.kind) {
        case RedistributionStep::LocalSlice:
          result = cut(blocks[rank], step.dim, step.axes, step.segments, rank);
          break;
        case RedistributionStep::AllGather:
          result = concatenate(members, step.dim);
          received[rank] +=
              result.elements.size() - blocks[rank].elements.size();
          break;
        case RedistributionStep::AllReduce: {
          result = reduce(members);
          int64_t size = result.elements.size();
          auto [begin, end] = chunk({0, size}, n, position);
          received[rank] += (end - begin) * (n - 1) + size - (end - begin);
          break;
        }
        case RedistributionStep::ReduceScatter: {
          Held sum = reduce(members);
          result = slice(sum, step.dim, own(sum));
          received[rank] += result.elements.size() * (n - 1);
          break;
        }
        case RedistributionStep::AllToAll: {
          if (!step.pairs.empty()) {
            result = allToAllOfSeveral(step, members, rank);
            received[rank] += result.elements.size() / n * (n - 1);
            break;
          }
          std::vector<Held> pieces;
          for (const Held &member : members)
            pieces.push_back(slice(member, step.dim, own(member)));
          result = concatenate(pieces, step.concatDim);
          received[rank] +=
              result.elements.size() - pieces[position].elements.size();
          break;
        }
        case RedistributionStep::Permute: {
          int64_t source = step.source[position];
          result = members[source];
          if (source != static_cast<int64_t>(position))
            received[rank] += result.elements.size();
          break;
        }
        case RedistributionStep::Exchange:
          result = exchange(step, shape, blocks, rank, received[rank]);
          break;
        }
      }
    }
    return after;
  }

  /// Each member gives what `rank` gets of every dimension that is split; the
  /// members' indices along the axes say where that goes.
  Held allToAllOfSeveral(const RedistributionStep &step, ArrayRef<Held> members,
                         int64_t rank) {
    std::vector<Held> pieces(members.begin(), members.end());
    for (Held &piece : pieces)
      for (auto [axis, pair] : llvm::zip_equal(step.axes, step.pairs))
        piece = slice(piece, pair.first,
                      getRange(axis, {0, piece.shape[pair.first]}, rank));
    for (auto [axis, pair] :
         llvm::reverse(llvm::zip_equal(step.axes, step.pairs))) {
      std::vector<Held> joined;
      for (size_t i = 0, n = mesh.getAxisSize(axis); i < pieces.size(); i += n)
        joined.push_back(
            concatenate(ArrayRef(pieces).slice(i, n), pair.second));
      pieces = joined;
    }
    return pieces.front();
  }

  Held exchange(const RedistributionStep &step, ArrayRef<int64_t> shape,
                const std::vector<Held> &blocks, int64_t rank,
                int64_t &received) {
    Held result{getBlockShape(tp::getBlock(shape, step.result, mesh, rank)),
                {}};
    result.elements.assign(result.getInner(0), {-1, 0});
    for (const Transfer &transfer :
         getTransfers(shape, step.operand, step.result, mesh, rank)) {
      const Held &source = blocks[transfer.source];
      int64_t size = llvm::product_of(transfer.size);
      if (transfer.source != rank)
        received += size;
      for (int64_t i = 0; i < size; ++i) {
        int64_t rest = i, from = 0, to = 0;
        for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
          int64_t index = rest % transfer.size[dim];
          rest /= transfer.size[dim];
          from +=
              (transfer.sourceOffset[dim] + index) * source.getInner(dim + 1);
          to += (transfer.offset[dim] + index) * result.getInner(dim + 1);
        }
        EXPECT_EQ(result.elements[to].index, -1);
        result.elements[to] = source.elements[from];
      }
    }
    return result;
  }

  /// Plans for f32 tensors, whose elements have four bytes.
  FailureOr<const RedistributionPlan *>
  plan(ArrayRef<int64_t> shape, ShardingAttr from, ShardingAttr to,
       RedistributionOptions options = {}) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    planner = std::make_unique<RedistributionPlanner>(mesh, options);
    return planner->plan(
        from, to, RankedTensorType::get(shape, Float32Type::get(&context)),
        [&] { return emitError(mesh.getLoc()); });
  }

  void check(ArrayRef<int64_t> shape, ShardingAttr from, ShardingAttr to,
             RedistributionOptions options = {}) {
    auto found = plan(shape, from, to, options);
    bool reachable = llvm::all_of(to.getPartial(), [&](PartialAttr p) {
      return mesh.getAxisSize(p.getAxis()) == 1 ||
             llvm::is_contained(from.getPartial(), p);
    });
    ASSERT_EQ(succeeded(found), reachable);
    if (!reachable)
      return;
    const RedistributionPlan &plan = **found;
    if (from == to) {
      EXPECT_TRUE(plan.steps.empty());
    }
    std::vector<Held> blocks = getBlocks(shape, from, from);
    std::vector<int64_t> received(mesh.getNumRanks(), 0);
    size_t peak = 0;
    auto measure = [&]() {
      for (const Held &block : blocks)
        peak = std::max(peak, block.elements.size());
    };
    measure();
    SmallVector<int64_t> viewed(
        plan.getViewed(RankedTensorType::get(shape, Float32Type::get(&context)))
            .getShape());
    // A view gives the elements of a block other indices, in the same order.
    auto see = [&](const std::vector<Held> &as) {
      for (auto [block, seen] : llvm::zip_equal(blocks, as)) {
        ASSERT_EQ(block.elements, seen.elements);
        block.shape = seen.shape;
      }
    };
    if (!plan.view.empty())
      see(getBlocks(viewed, from, plan.steps.front().operand));
    for (const RedistributionStep &step : plan.steps) {
      blocks = apply(step, viewed, blocks, received);
      measure();
      ASSERT_TRUE(step.result);
      ASSERT_EQ(blocks, getBlocks(viewed, from, step.result));
    }
    if (!plan.view.empty())
      see(getBlocks(shape, from, to));
    ASSERT_EQ(blocks, getBlocks(shape, from, to));

    // The certificate: exact, and no better than its bounds.
    int64_t total =
        std::accumulate(received.begin(), received.end(), int64_t(0));
    EXPECT_EQ(plan.receivedTotal, 4 * total);
    EXPECT_EQ(plan.receivedMax, 4 * *llvm::max_element(received));
    EXPECT_EQ(plan.peak, static_cast<int64_t>(4 * peak));
    EXPECT_LE(plan.lowerBoundTotal, plan.receivedTotal);
    EXPECT_LE(plan.lowerBoundMax, plan.receivedMax);
    EXPECT_LE(plan.peakLowerBound, plan.peak);
    if (options.memory) {
      EXPECT_EQ(plan.peak, plan.peakLowerBound);
    }
    // Where sizes divide, collectives need no larger block.
    if (!options.oneShot && isEven(shape, from, mesh) &&
        isEven(shape, to, mesh)) {
      EXPECT_EQ(plan.peak, plan.peakLowerBound);
    }
    bool reduces = llvm::any_of(from.getPartial(), [&](PartialAttr p) {
      return mesh.getAxisSize(p.getAxis()) > 1 &&
             !llvm::is_contained(to.getPartial(), p);
    });
    if (options.oneShot && !reduces) {
      EXPECT_TRUE(plan.isOptimal());
      EXPECT_EQ(plan.receivedMax, plan.lowerBoundMax);
      EXPECT_LE(plan.getNumCollectives(), 1);
    }
  }

  /// All pairs of `placements` of a tensor of `shape`.
  void checkAllPairs(ArrayRef<int64_t> shape, ArrayRef<ShardingAttr> placements,
                     RedistributionOptions options = {}) {
    for (ShardingAttr from : placements)
      for (ShardingAttr to : placements) {
        SCOPED_TRACE(printPair(from, to));
        check(shape, from, to, options);
        if (HasFatalFailure())
          return;
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
  std::unique_ptr<RedistributionPlanner> planner;
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

} // namespace mlir::tp::test

#endif // TP_UNITTESTS_SHARDING_SIMULATEDREDISTRIBUTION_H
