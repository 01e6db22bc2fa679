//===- TileLoops.cpp - Transposed operands by tiles -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A transposed operand is contiguous along a loop R instead of the results'
// innermost loop, C. A block has a tile of both loops. It first loads the
// operand's tile along R into shared memory, then computes the elements along
// C:
//
//   operand        shared[C][R + 1]       results
//   c0: r r r r    c0: r r r r .          r0: c c c c
//   c1: r r r r    c1: r r r r .          r1: c c c c
//
// In both steps eight neighboring threads have neighboring vectors, 128 bytes
// in all, and a warp has four such lines. In shared memory, a warp then
// accesses eight columns, one vector apart, of four rows at a time, or the
// other way round. These elements are in different banks, because a row is one
// element longer than the tile.
//
//===----------------------------------------------------------------------===//

#include "ThreadLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::tp;

/// Neighboring vectors of neighboring threads.
static constexpr int64_t kNeighbors = 8;

void ThreadLoops::enterInside(Value coordinate, int64_t size, bool isAlways) {
  if (isAlways)
    return;
  Location loc = kernel.getLoc();
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         coordinate, constant(size));
  auto branch = scf::IfOp::create(b, loc, isInside);
  b.setInsertionPointToStart(branch.thenBlock());
}

void ThreadLoops::writeTile(const LoopPlan &plan, Value number,
                            const IRMapping &mapping) {
  linalg::GenericOp op = plan.op;
  Location loc = op.getLoc();
  const LoopPlan::Tile &tile = *plan.tile;
  unsigned innermost = plan.parallel.size() - 1;
  int64_t numRows = plan.parallel[tile.loop].size,
          numColumns = plan.parallel[innermost].size;
  SmallVector<Value> fixed(op.getNumLoops());
  SmallVector<Flat> flats;
  for (const LoopPlan::Access &access : plan.accesses)
    flats.push_back(flatten(access, fixed, mapping));
  Coordinates origin = delinearize(number, plan.getTiles());
  origin[tile.loop] = scale(origin[tile.loop], tile.rows);
  origin[innermost] = scale(origin[innermost], tile.columns);

  // Each thread's vectors of `lanes` elements along a line of the tile.
  auto enterParts =
      [&](int64_t length, int64_t lanes,
          int64_t numLines) -> std::pair<Value, Value> { // element, line
    int64_t perLine = std::max<int64_t>(length / lanes, 1),
            neighbors = std::min(perLine, kNeighbors);
    int64_t parts = perLine * numLines;
    Value part = team.thread;
    if (parts > team.size)
      part = enterLoop(team.thread, parts, team.size).second;
    else
      enterInside(part, parts, parts == team.size);
    Coordinates coordinates = delinearize(
        part, {LoopPlan::Loop{{}, perLine / neighbors},
               LoopPlan::Loop{{}, numLines}, LoopPlan::Loop{{}, neighbors}});
    Value vector = add(scale(coordinates[0], neighbors), coordinates[2]);
    return {scale(vector, lanes), coordinates[1]};
  };
  auto getCoordinates = [&](Value row, Value column) {
    Coordinates coordinates = origin;
    coordinates[tile.loop] = add(origin[tile.loop], row);
    coordinates[innermost] = add(origin[innermost], column);
    enterInside(coordinates[tile.loop], numRows, numRows % tile.rows == 0);
    enterInside(coordinates[innermost], numColumns,
                numColumns % tile.columns == 0);
    return coordinates;
  };

  SmallVector<std::pair<OpOperand *, Value>> buffers;
  for (auto [access, flat] : llvm::zip_equal(plan.accesses, flats)) {
    if (access.tileLanes == 0)
      continue;
    Type element =
        cast<MemRefType>(access.operand->get().getType()).getElementType();
    Value buffer =
        addToBlock(MemRefType::get({tile.columns, tile.rows + 1}, element));
    buffers.push_back({access.operand, buffer});
    OpBuilder::InsertionGuard guard(b);
    auto [row, column] = enterParts(tile.rows, access.tileLanes, tile.columns);
    Coordinates coordinates = getCoordinates(row, column);
    LoopPlan::Access along = access;
    along.isVector = access.tileLanes > 1;
    SmallVector<Value> values =
        load(along, flat, getAddress(plan, access, flat, coordinates, {}), 1,
             access.tileLanes);
    for (auto [i, value] : llvm::enumerate(values))
      memref::StoreOp::create(
          b, loc, value, buffer,
          ValueRange{column, i == 0 ? row : add(row, constant(i))});
  }
  gpu::BarrierOp::create(b, loc);

  OpBuilder::InsertionGuard guard(b);
  auto [column, row] = enterParts(tile.columns, plan.lanes, tile.rows);
  Coordinates coordinates = getCoordinates(row, column);
  DenseMap<OpOperand *, SmallVector<Value>> known;
  for (auto [operand, buffer] : buffers)
    for (int64_t lane = 0; lane < plan.lanes; ++lane)
      known[operand].push_back(memref::LoadOp::create(
          b, loc, buffer,
          ValueRange{lane == 0 ? column : add(column, constant(lane)), row}));
  writePart(plan, fixed, coordinates, flats, known, mapping);
}
