//===- ThreadLanes.cpp - The body of an op for several lanes --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ThreadLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tp/Dialect/TP/Elements.h"

using namespace mlir;
using namespace mlir::tp;

/// Whether `load`, in the body of an op, reads adjacent elements in adjacent
/// lanes, of which the first one's position is a multiple of their number.
static bool isContiguous(memref::LoadOp load, ArrayRef<IRMapping> lanes) {
  auto type = load.getMemRefType();
  auto numLanes = static_cast<int64_t>(lanes.size());
  SmallVector<int64_t> strides;
  int64_t offset;
  // A lane's number is part of the coordinate of the lanes' loop only.
  if (type.getRank() == 0 || type.getElementType().isInteger(1) ||
      !load.getIndices().back().getDefiningOp<linalg::IndexOp>() ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      strides.back() != 1 || ShapedType::isDynamic(offset) ||
      offset % numLanes != 0 || getAlignment(load.getMemRef()) % numLanes != 0)
    return false;
  for (int64_t stride : ArrayRef(strides).drop_back())
    if (ShapedType::isDynamic(stride) || stride % numLanes != 0)
      return false;
  Value first = lanes.front().lookupOrDefault(load.getIndices().back());
  for (auto [number, lane] : llvm::enumerate(lanes)) {
    for (Value index : load.getIndices().drop_back())
      if (lane.lookupOrDefault(index) != lanes.front().lookupOrDefault(index))
        return false;
    if (number == 0)
      continue;
    auto next = lane.lookupOrDefault(load.getIndices().back())
                    .getDefiningOp<arith::AddIOp>();
    if (!next || next.getLhs() != first ||
        getConstantIntValue(next.getRhs()) != static_cast<int64_t>(number))
      return false;
  }
  return true;
}

void ThreadLoops::loadLanes(memref::LoadOp load,
                            MutableArrayRef<IRMapping> lanes) {
  Location loc = load.getLoc();
  int64_t count = lanes.size();
  auto type = VectorType::get({count}, load.getType());
  IRMapping &first = lanes.front();
  SmallVector<Value> indices = llvm::map_to_vector(
      load.getIndices(), [&](Value v) { return first.lookupOrDefault(v); });
  Value vector = vector::LoadOp::create(
      b, loc, type, first.lookupOrDefault(load.getMemRef()), indices,
      /*nontemporal=*/false,
      llvm::MaybeAlign(count * getElementBytes(load.getType())));
  for (auto [i, lane] : llvm::enumerate(lanes))
    lane.map(load.getResult(),
             vector::ExtractOp::create(b, loc, vector, i).getResult());
}

void ThreadLoops::writeLanes(
    Block::OpListType::iterator first, Block::OpListType::iterator last,
    MutableArrayRef<IRMapping> lanes,
    llvm::function_ref<Value(unsigned, unsigned)> getIteration) {
  // Whether a lane computes the same as the first one.
  auto isShared = [&](Operation &source, IRMapping &lane) {
    return llvm::all_of(source.getOperands(), [&](Value operand) {
      return lane.lookupOrDefault(operand) ==
             lanes.front().lookupOrDefault(operand);
    });
  };
  for (Operation &source : llvm::make_range(first, last)) {
    if (auto index = dyn_cast<linalg::IndexOp>(source)) {
      for (auto [i, lane] : llvm::enumerate(lanes))
        lane.map(index.getResult(), getIteration(i, index.getDim()));
      continue;
    }
    if (auto load = dyn_cast<memref::LoadOp>(source);
        load && lanes.size() > 1 && isContiguous(load, lanes)) {
      loadLanes(load, lanes);
      continue;
    }
    auto loop = dyn_cast<scf::ForOp>(source);
    auto isBound = [&](IRMapping &lane) {
      return llvm::all_of(ValueRange{loop.getLowerBound(), loop.getUpperBound(),
                                     loop.getStep()},
                          [&](Value bound) {
                            return lane.lookupOrDefault(bound) ==
                                   lanes.front().lookupOrDefault(bound);
                          });
    };
    if (loop && llvm::all_of(lanes, isBound)) {
      SmallVector<Value> inits, yielded;
      for (IRMapping &lane : lanes)
        for (Value init : loop.getInitArgs())
          inits.push_back(lane.lookupOrDefault(init));
      auto bound = [&](Value value) {
        return lanes.front().lookupOrDefault(value);
      };
      auto joint = scf::ForOp::create(
          b, loop.getLoc(), bound(loop.getLowerBound()),
          bound(loop.getUpperBound()), bound(loop.getStep()), inits);
      unsigned count = loop.getNumResults();
      OpBuilder::InsertionGuard guard(b);
      if (count == 0)
        joint.getBody()->getTerminator()->erase();
      b.setInsertionPointToStart(joint.getBody());
      for (auto [i, lane] : llvm::enumerate(lanes)) {
        lane.map(loop.getInductionVar(), joint.getInductionVar());
        lane.map(loop.getRegionIterArgs(),
                 joint.getRegionIterArgs().slice(i * count, count));
      }
      Block &body = *loop.getBody();
      writeLanes(body.begin(), std::prev(body.end()), lanes, getIteration);
      for (auto [i, lane] : llvm::enumerate(lanes)) {
        for (Value value : body.getTerminator()->getOperands())
          yielded.push_back(lane.lookupOrDefault(value));
        lane.map(loop.getResults(), joint.getResults().slice(i * count, count));
      }
      scf::YieldOp::create(b, loop.getLoc(), yielded);
      continue;
    }
    for (auto [i, lane] : llvm::enumerate(lanes)) {
      if (i > 0 && source.getNumRegions() == 0 && isShared(source, lane)) {
        for (Value result : source.getResults())
          lane.map(result, lanes.front().lookup(result));
        continue;
      }
      Operation *copy = b.clone(source, lane);
      copy->walk([&, i = i](linalg::IndexOp index) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(index);
        index.replaceAllUsesWith(getIteration(i, index.getDim()));
        index.erase();
      });
    }
  }
}

SmallVector<Value> ThreadLoops::writeBody(
    const LoopPlan &plan, ArrayRef<SmallVector<Value>> arguments,
    ArrayRef<Value> fixed, ArrayRef<Value> parallel, ArrayRef<Value> reduction,
    int64_t firstLane, const IRMapping &mapping) {
  linalg::GenericOp op = plan.op;
  // The coordinate of a lane along loop `d` of the op.
  auto getIteration = [&](unsigned number, unsigned d) -> Value {
    Value found = fixed[d];
    auto setLoops = [&](ArrayRef<LoopPlan::Loop> loops,
                        ArrayRef<Value> coordinates, bool hasLanes) {
      for (auto [i, coordinate] : llvm::enumerate(coordinates)) {
        if (loops[i].dims.back() != d)
          continue;
        int64_t lane = firstLane + number;
        found = hasLanes && lane > 0 && i + 1 == loops.size()
                    ? add(coordinate, constant(lane))
                    : coordinate;
      }
    };
    setLoops(plan.parallel, parallel, !plan.isTeamReduction());
    setLoops(plan.reduction, reduction, plan.isTeamReduction());
    return found ? found : constant(0);
  };
  Block &block = op.getRegion().front();
  SmallVector<IRMapping> lanes(arguments.size(), mapping);
  for (auto [lane, values] : llvm::zip_equal(lanes, arguments))
    lane.map(block.getArguments(), values);
  writeLanes(block.begin(), std::prev(block.end()), lanes, getIteration);
  SmallVector<Value> results;
  for (IRMapping &lane : lanes)
    for (Value value : block.getTerminator()->getOperands())
      results.push_back(lane.lookupOrDefault(value));
  return results;
}
