//===- ThreadReductions.cpp - Reductions by threads and by teams ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ThreadLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::tp;

SmallVector<Value>
ThreadLoops::writeReduction(const LoopPlan &plan, ArrayRef<Value> inits,
                            Value first, int64_t step, ArrayRef<Value> fixed,
                            ArrayRef<Value> parallel, ArrayRef<Flat> flats,
                            const IRMapping &mapping) {
  linalg::GenericOp op = plan.op;
  Location loc = op.getLoc();
  bool isShared = plan.isTeamReduction();
  int64_t lanes = plan.lanes, laneStep = isShared ? lanes : 1;
  const LoopPlan::Loop &laneLoop = isShared || plan.parallel.empty()
                                       ? plan.reduction.back()
                                       : plan.parallel.back();
  OpBuilder::InsertionGuard guard(b);
  auto [loop, part] =
      enterLoop(first, plan.reductionSize / laneStep, step, inits);
  Coordinates reduction = delinearize(scale(part, laneStep), plan.reduction);
  unsigned numInputs = op.getNumDpsInputs(), numInits = op.getNumDpsInits();
  SmallVector<SmallVector<Value>> inputs; // by operand and lane
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (Value known = getValue(*input, mapping)) {
      inputs.push_back(SmallVector<Value>(lanes, known));
      continue;
    }
    const LoopPlan::Access &access = *plan.getAccess(*input);
    const Flat &flat = flats[&access - plan.accesses.data()];
    Value address = getAddress(plan, access, flat, parallel, reduction);
    inputs.push_back(load(access, flat, address,
                          access.strides[laneLoop.dims.back()], lanes));
  }
  // The lanes of a team's reduction share one sum; otherwise each has its own.
  SmallVector<Value> sums(loop.getRegionIterArgs());
  for (int64_t lane = 0; lane < lanes; ++lane) {
    unsigned start = isShared ? 0 : lane * numInits;
    SmallVector<Value> arguments;
    for (unsigned i = 0; i < numInputs; ++i)
      arguments.push_back(inputs[i][lane]);
    llvm::append_range(arguments, ArrayRef(sums).slice(start, numInits));
    SmallVector<Value> results =
        writeBody(plan, ArrayRef<SmallVector<Value>>(arguments), fixed,
                  parallel, reduction, lane, mapping);
    llvm::copy(results, sums.begin() + start);
  }
  scf::YieldOp::create(b, loc, sums);
  return SmallVector<Value>(loop.getResults());
}

Value ThreadLoops::combine(Operation *combiner, Value x, Value y) {
  IRMapping mapping;
  mapping.map(combiner->getOperand(0), x);
  mapping.map(combiner->getOperand(1), y);
  return b.clone(*combiner, mapping)->getResult(0);
}

Value ThreadLoops::shuffle(Value value, int64_t mask) {
  Location loc = value.getLoc();
  Type type = value.getType(), i32 = b.getI32Type();
  unsigned width = type.getIntOrFloatBitWidth();
  auto integer = b.getIntegerType(width);
  if (!type.isInteger())
    value = arith::BitcastOp::create(b, loc, integer, value);
  auto exchange = [&](Value word) {
    return gpu::ShuffleOp::create(b, loc, word, mask, kWarpSize,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  Value other;
  if (width == 32) {
    other = exchange(value);
  } else if (width < 32) {
    other = exchange(arith::ExtUIOp::create(b, loc, i32, value));
    other = arith::TruncIOp::create(b, loc, integer, other);
  } else {
    Value shift =
        arith::ConstantOp::create(b, loc, b.getIntegerAttr(integer, 32));
    Value high = arith::ShRUIOp::create(b, loc, value, shift);
    Value low = exchange(arith::TruncIOp::create(b, loc, i32, value));
    high = exchange(arith::TruncIOp::create(b, loc, i32, high));
    low = arith::ExtUIOp::create(b, loc, integer, low);
    high = arith::ExtUIOp::create(b, loc, integer, high);
    other = arith::OrIOp::create(b, loc, low,
                                 arith::ShLIOp::create(b, loc, high, shift));
  }
  return type.isInteger() ? other
                          : arith::BitcastOp::create(b, loc, type, other);
}

Value ThreadLoops::reduceOverTeam(Value value, Operation *combiner) {
  Location loc = combiner->getLoc();
  if (team.size == 1)
    return value;
  // The positions of this team's partial sums in shared memory.
  int64_t parts = team.size, stride = 1;
  Value part = team.thread, start = team.teams > 1 ? team.row : Value(),
        isWriter;
  if (team.isInterleaved) {
    stride = team.teams;
  } else {
    // Both lanes of a pair compute the same sum, so all lanes agree.
    for (int64_t mask = std::min(team.size, kWarpSize) / 2; mask > 0; mask /= 2)
      value = combine(combiner, value, shuffle(value, mask));
    if (team.size <= kWarpSize)
      return value;
    parts = team.size / kWarpSize;
    start = scale(start, parts);
    Value warpSize = constant(kWarpSize);
    part = arith::DivUIOp::create(b, loc, team.thread, warpSize);
    Value lane = arith::RemUIOp::create(b, loc, team.thread, warpSize);
    isWriter = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                     constant(0));
  }
  Value buffer =
      addToBlock(MemRefType::get({parts * team.teams}, value.getType()));
  {
    OpBuilder::InsertionGuard guard(b);
    if (isWriter) {
      auto writer = scf::IfOp::create(b, loc, isWriter);
      b.setInsertionPointToStart(writer.thenBlock());
    }
    memref::StoreOp::create(b, loc, value, buffer,
                            add(scale(part, stride), start));
  }
  gpu::BarrierOp::create(b, loc);
  touches.clear();
  auto getPart = [&](Value i) -> Value {
    Value at = add(scale(i, stride), start);
    return memref::LoadOp::create(b, loc, buffer, at);
  };
  auto loop = scf::ForOp::create(b, loc, constant(1), constant(parts),
                                 constant(1), getPart(constant(0)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b, loc,
                       combine(combiner, loop.getRegionIterArg(0),
                               getPart(loop.getInductionVar())));
  return loop.getResult(0);
}
