//===- ThreadLoops.cpp - linalg ops by many threads -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ThreadLoops.h"
#include "CodeGen/Loops/Buffers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tp/Dialect/TP/Elements.h"

using namespace mlir;
using namespace mlir::tp;

/// The flags of arithmetic on indices inside buffers.
static constexpr arith::IntegerOverflowFlags kNoOverflow =
    arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;

//===----------------------------------------------------------------------===//
// Arithmetic on indices
//===----------------------------------------------------------------------===//

Value ThreadLoops::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, kernel.getLoc(), value);
}

Value ThreadLoops::add(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AddIOp::create(b, kernel.getLoc(), x, y, kNoOverflow);
}

Value ThreadLoops::scale(Value x, int64_t factor) {
  if (!x || factor == 0)
    return Value();
  return factor == 1 ? x
                     : arith::MulIOp::create(b, kernel.getLoc(), x,
                                             constant(factor), kNoOverflow)
                           .getResult();
}

ThreadLoops::Coordinates
ThreadLoops::delinearize(Value index, ArrayRef<LoopPlan::Loop> loops) {
  Coordinates coordinates(loops.size());
  for (int i = loops.size() - 1; i > 0; --i) {
    Value size = constant(loops[i].size);
    coordinates[i] = arith::RemUIOp::create(b, kernel.getLoc(), index, size);
    index = arith::DivUIOp::create(b, kernel.getLoc(), index, size);
  }
  if (!loops.empty())
    coordinates[0] = index;
  return coordinates;
}

/// Builds and enters a loop over `first`, `first + step`, … below `count`;
/// returns it and its variable. If `step` divides `count`, the loop counts its
/// iterations instead, because LLVM unrolls such a loop.
std::pair<scf::ForOp, Value> ThreadLoops::enterLoop(Value first, int64_t count,
                                                    int64_t step,
                                                    ValueRange inits) {
  Location loc = kernel.getLoc();
  bool isWhole = count % step == 0;
  auto loop = scf::ForOp::create(b, loc, isWhole ? constant(0) : first,
                                 constant(isWhole ? count / step : count),
                                 constant(isWhole ? 1 : step), inits);
  b.setInsertionPointToStart(loop.getBody());
  Value variable = loop.getInductionVar();
  return {loop, isWhole ? add(first, scale(variable, step)) : variable};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A buffer of `type` in the block's shared memory. It is aligned to more than
/// an element, so that LLVM may load several at a time.
Value ThreadLoops::addToBlock(MemRefType type) {
  auto shared = MemRefType::get(
      type.getShape(), type.getElementType(), MemRefLayoutAttrInterface(),
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup));
  unsigned number = kernel.getNumWorkgroupAttributions();
  Value buffer = kernel.addWorkgroupAttribution(shared, kernel.getLoc());
  kernel.setWorkgroupAttributionAttr(number,
                                     LLVM::LLVMDialect::getAlignAttrName(),
                                     b.getI64IntegerAttr(kBufferAlignment));
  return buffer;
}

Value ThreadLoops::createShared(MemRefType type) {
  int64_t bytes = llvm::alignTo(getTensorBytes(type), kVectorBytes);
  Location loc = kernel.getLoc();
  auto bytesType = MemRefType::get({bytes * team.teams}, b.getI8Type());
  Value buffer = addToBlock(bytesType);
  Value generic = memref::MemorySpaceCastOp::create(b, loc, bytesType, buffer);
  Value start = scale(team.teams > 1 ? team.row : Value(), bytes);
  return memref::ViewOp::create(b, loc, type, generic,
                                start ? start : constant(0), ValueRange());
}

ThreadLoops::Flat ThreadLoops::flatten(const LoopPlan::Access &access,
                                       ArrayRef<Value> fixed,
                                       const IRMapping &mapping) {
  Location loc = kernel.getLoc();
  Value buffer = mapping.lookupOrDefault(access.operand->get());
  auto type = cast<MemRefType>(buffer.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, buffer);
  int64_t size = 1, offset;
  SmallVector<int64_t> strides;
  (void)type.getStridesAndOffset(strides, offset);
  for (auto [stride, extent] : llvm::zip_equal(strides, type.getShape()))
    size += stride * (extent - 1);
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1});
  auto flatType = MemRefType::get({size}, type.getElementType(), layout,
                                  type.getMemorySpace());
  OpFoldResult one = b.getIndexAttr(1), sizeAttr = b.getIndexAttr(size);
  Flat flat;
  flat.buffer = memref::ReinterpretCastOp::create(
      b, loc, flatType, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()), ArrayRef<OpFoldResult>{sizeAttr},
      ArrayRef<OpFoldResult>{one});
  if (access.offset != 0)
    flat.offset = constant(access.offset);
  for (auto [value, stride] : llvm::zip_equal(fixed, access.strides))
    flat.offset = add(flat.offset, scale(value, stride));
  return flat;
}

Value ThreadLoops::getAddress(const LoopPlan &plan,
                              const LoopPlan::Access &access, const Flat &flat,
                              ArrayRef<Value> parallel,
                              ArrayRef<Value> reduction) {
  Value address = flat.offset;
  auto addLoops = [&](ArrayRef<LoopPlan::Loop> loops,
                      ArrayRef<Value> coordinates) {
    for (auto [i, coordinate] : llvm::enumerate(coordinates))
      address =
          add(address, scale(coordinate, access.strides[loops[i].dims.back()]));
  };
  addLoops(plan.parallel, parallel);
  addLoops(plan.reduction, reduction);
  return address ? address : constant(0);
}

SmallVector<Value> ThreadLoops::load(const LoopPlan::Access &access,
                                     const Flat &flat, Value address,
                                     int64_t laneStride, int64_t lanes) {
  Location loc = kernel.getLoc();
  SmallVector<Value> values;
  if (access.isVector) {
    Type element = cast<MemRefType>(flat.buffer.getType()).getElementType();
    Value vector = vector::LoadOp::create(
        b, loc, VectorType::get({lanes}, element), flat.buffer, address,
        /*nontemporal=*/false,
        llvm::MaybeAlign(lanes * getElementBytes(element)));
    for (int64_t lane = 0; lane < lanes; ++lane)
      values.push_back(vector::ExtractOp::create(b, loc, vector, lane));
    return values;
  }
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (lane > 0 && laneStride == 0) {
      values.push_back(values.front());
      continue;
    }
    Value at = lane == 0 ? address : add(address, constant(lane * laneStride));
    values.push_back(memref::LoadOp::create(b, loc, flat.buffer, at));
  }
  return values;
}

void ThreadLoops::store(const Flat &flat, Value address,
                        ArrayRef<Value> values) {
  Location loc = kernel.getLoc();
  if (values.size() == 1) {
    memref::StoreOp::create(b, loc, values.front(), flat.buffer, address);
    return;
  }
  Type element = values.front().getType();
  int64_t lanes = values.size();
  Value vector = vector::FromElementsOp::create(
      b, loc, VectorType::get({lanes}, element), values);
  vector::StoreOp::create(b, loc, vector, flat.buffer, address,
                          /*nontemporal=*/false,
                          llvm::MaybeAlign(lanes * getElementBytes(element)));
}

/// The key of a one-element buffer in `scalars`: views of a register are the
/// register.
Value ThreadLoops::getScalarKey(Value buffer) {
  Value root = getRootBuffer(buffer);
  return registers.contains(root) ? root : buffer;
}

Value ThreadLoops::getValue(OpOperand &operand, const IRMapping &mapping) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return mapping.lookupOrDefault(operand.get());
  if (type.getNumElements() == 1)
    if (Value known = scalars.lookup(getScalarKey(operand.get())))
      return known;
  return Value();
}

/// Inserts a barrier if a thread touches what another one has touched.
void ThreadLoops::separate(const LoopPlan &plan, const IRMapping &mapping) {
  linalg::GenericOp op = plan.op;
  bool isElementwise = plan.parallelSize > 1;
  SmallVector<Touch> next;
  auto getAssignment = [&](const LoopPlan::Access &access) {
    SmallVector<int64_t> assignment;
    bool isShared = isElementwise || plan.isTeamReduction();
    if (!isShared)
      return assignment;
    for (const LoopPlan::Loop &loop :
         isElementwise ? plan.reduction : ArrayRef<LoopPlan::Loop>())
      if (access.strides[loop.dims.back()] != 0)
        return assignment;
    assignment.push_back(plan.lanes);
    for (const LoopPlan::Loop &loop :
         isElementwise ? plan.parallel : plan.reduction)
      llvm::append_values(assignment, loop.size,
                          access.strides[loop.dims.back()]);
    return assignment;
  };
  for (const LoopPlan::Access &access : plan.accesses) {
    Value buffer = access.operand->get(), root = getRootBuffer(buffer);
    bool isInit = op.isDpsInit(access.operand);
    bool isKnown = getValue(*access.operand, mapping) != nullptr;
    if (registers.contains(root))
      continue;
    if (!isInit || op.payloadUsesValueFromOperand(access.operand)) {
      if (!isKnown)
        next.push_back({root, false,
                        isInit && !isElementwise ? SmallVector<int64_t>()
                                                 : getAssignment(access),
                        buffer});
    }
    if (isInit && isElementwise)
      next.push_back({root, true, getAssignment(access), buffer});
    else if (isInit) // written by the team's first thread
      next.push_back({root, true, {-1}, Value()});
  }
  op.getRegion().walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<MemRefType>(operand.getType()))
        next.push_back(
            {getRootBuffer(operand), !isa<memref::LoadOp>(inner), {}, operand});
  });
  bool isRace = llvm::any_of(next, [&](const Touch &x) {
    return llvm::any_of(touches, [&](const Touch &y) {
      return x.root == y.root && (x.isWrite || y.isWrite) &&
             (x.assignment.empty() || x.assignment != y.assignment ||
              x.buffer != y.buffer);
    });
  });
  if (isRace) {
    gpu::BarrierOp::create(b, op.getLoc());
    touches.clear();
  }
  llvm::append_range(touches, next);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Writes an op for which each thread computes elements of the results.
void ThreadLoops::writeElements(const LoopPlan &plan, ArrayRef<Value> fixed,
                                const IRMapping &mapping) {
  linalg::GenericOp op = plan.op;
  Location loc = op.getLoc();
  int64_t lanes = plan.lanes, parts = plan.parallelSize / lanes;
  SmallVector<Flat> flats;
  for (const LoopPlan::Access &access : plan.accesses)
    flats.push_back(getValue(*access.operand, mapping)
                        ? Flat()
                        : flatten(access, fixed, mapping));
  OpBuilder::InsertionGuard guard(b);
  if (team.isActive) {
    auto active = scf::IfOp::create(b, loc, team.isActive);
    b.setInsertionPointToStart(active.thenBlock());
  }
  Value part = team.thread;
  if (parts > team.size) {
    part = enterLoop(team.thread, parts, team.size).second;
  } else if (parts < team.size) {
    Value isPart = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         team.thread, constant(parts));
    auto some = scf::IfOp::create(b, loc, isPart);
    b.setInsertionPointToStart(some.thenBlock());
  }
  writePart(plan, fixed, delinearize(scale(part, lanes), plan.parallel), flats,
            /*known=*/DenseMap<OpOperand *, SmallVector<Value>>(), mapping);
}

void ThreadLoops::writePart(
    const LoopPlan &plan, ArrayRef<Value> fixed, ArrayRef<Value> parallel,
    ArrayRef<Flat> flats,
    const DenseMap<OpOperand *, SmallVector<Value>> &known,
    const IRMapping &mapping) {
  linalg::GenericOp op = plan.op;
  int64_t lanes = plan.lanes;
  unsigned laneDim = plan.parallel.back().dims.back();
  auto loadOperand = [&](OpOperand &operand) {
    if (Value value = getValue(operand, mapping))
      return SmallVector<Value>(lanes, value);
    if (auto it = known.find(&operand); it != known.end())
      return it->second;
    const LoopPlan::Access &access = *plan.getAccess(operand);
    const Flat &flat = flats[&access - plan.accesses.data()];
    return load(access, flat, getAddress(plan, access, flat, parallel, {}),
                access.strides[laneDim], lanes);
  };
  unsigned numInits = op.getNumDpsInits();
  SmallVector<SmallVector<Value>> inits; // by operand and lane
  for (OpOperand &init : op.getDpsInitsMutable())
    inits.push_back(op.payloadUsesValueFromOperand(&init)
                        ? loadOperand(init)
                        : SmallVector<Value>(lanes));
  SmallVector<Value> results; // by lane and operand
  if (plan.reductionSize > 1) {
    SmallVector<Value> start;
    for (int64_t lane = 0; lane < lanes; ++lane)
      for (const auto &init : inits)
        start.push_back(init[lane]);
    results = writeReduction(plan, start, constant(0), 1, fixed, parallel,
                             flats, mapping);
  } else {
    SmallVector<SmallVector<Value>> operands;
    for (OpOperand *input : op.getDpsInputOperands())
      operands.push_back(loadOperand(*input));
    llvm::append_range(operands, inits);
    SmallVector<SmallVector<Value>> arguments(lanes); // by lane
    for (int64_t lane = 0; lane < lanes; ++lane)
      for (const auto &operand : operands)
        arguments[lane].push_back(operand[lane]);
    results = writeBody(plan, arguments, fixed, parallel, {}, 0, mapping);
  }
  for (auto [i, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    SmallVector<Value> values;
    for (int64_t lane = 0; lane < lanes; ++lane)
      values.push_back(results[lane * numInits + i]);
    const LoopPlan::Access &access = *plan.getAccess(init);
    const Flat &flat = flats[&access - plan.accesses.data()];
    store(flat, getAddress(plan, access, flat, parallel, {}), values);
  }
}

/// Writes an op whose results, one element each, all threads have.
void ThreadLoops::writeScalars(const LoopPlan &plan, ArrayRef<Value> fixed,
                               const IRMapping &mapping) {
  linalg::GenericOp op = plan.op;
  Location loc = op.getLoc();
  SmallVector<Flat> flats;
  for (const LoopPlan::Access &access : plan.accesses)
    flats.push_back(registers.contains(getRootBuffer(access.operand->get()))
                        ? Flat()
                        : flatten(access, fixed, mapping));
  // Whether a buffer that is loaded here is also written here.
  bool isLoaded = false;
  auto isWritten = [&](Value root) {
    return llvm::any_of(op.getDpsInits(), [&](Value init) {
      return getRootBuffer(init) == root;
    });
  };
  auto loadOperand = [&](OpOperand &operand) {
    if (Value known = getValue(operand, mapping))
      return known;
    const LoopPlan::Access &access = *plan.getAccess(operand);
    const Flat &flat = flats[&access - plan.accesses.data()];
    isLoaded |= isWritten(getRootBuffer(operand.get()));
    return Value(memref::LoadOp::create(
        b, loc, flat.buffer, getAddress(plan, access, flat, {}, {})));
  };
  SmallVector<Value> inits, results;
  for (OpOperand &init : op.getDpsInitsMutable())
    inits.push_back(op.payloadUsesValueFromOperand(&init) ? loadOperand(init)
                                                          : Value());
  if (plan.isTeamReduction()) {
    SmallVector<Value> neutral;
    for (Operation *combiner : plan.combiners)
      neutral.push_back(arith::ConstantOp::create(
          b, loc, *arith::getNeutralElement(combiner)));
    SmallVector<Value> sums = writeReduction(
        plan, neutral, team.thread, team.size, fixed, {}, flats, mapping);
    for (auto [sum, init, combiner] :
         llvm::zip_equal(sums, inits, plan.combiners))
      results.push_back(combine(combiner, init, reduceOverTeam(sum, combiner)));
  } else if (plan.reductionSize > 1) {
    results =
        writeReduction(plan, inits, constant(0), 1, fixed, {}, flats, mapping);
  } else {
    SmallVector<Value> arguments;
    for (OpOperand *input : op.getDpsInputOperands())
      arguments.push_back(loadOperand(*input));
    llvm::append_range(arguments, inits);
    results = writeBody(plan, ArrayRef<SmallVector<Value>>(arguments), fixed,
                        {}, {}, 0, mapping);
  }

  if (isLoaded && team.size > 1)
    gpu::BarrierOp::create(b, loc);
  for (auto [init, result] :
       llvm::zip_equal(op.getDpsInitsMutable(), results)) {
    Value root = getRootBuffer(init.get());
    for (auto &[buffer, value] : scalars)
      if (getRootBuffer(buffer) == root)
        value = Value();
    if (cast<MemRefType>(init.get().getType()).getNumElements() == 1)
      scalars[getScalarKey(init.get())] = result;
    if (registers.contains(root))
      continue;
    Value isFirst = team.isActive;
    if (team.size > 1) {
      isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                      team.thread, constant(0));
      if (team.isActive)
        isFirst = arith::AndIOp::create(b, loc, isFirst, team.isActive);
    }
    OpBuilder::InsertionGuard guard(b);
    if (isFirst) {
      auto first = scf::IfOp::create(b, loc, isFirst);
      b.setInsertionPointToStart(first.thenBlock());
    }
    const LoopPlan::Access &access = *plan.getAccess(init);
    const Flat &flat = flats[&access - plan.accesses.data()];
    store(flat, getAddress(plan, access, flat, {}, {}), result);
    touches.push_back({root, true, {-1}, Value()});
  }
}

LogicalResult ThreadLoops::write(const LoopPlan &plan, ArrayRef<Value> fixed,
                                 const IRMapping &mapping) {
  linalg::GenericOp op = plan.op;
  for (const LoopPlan::Access &access : plan.accesses) {
    Value root = getRootBuffer(access.operand->get());
    if (registers.contains(root) &&
        op.payloadUsesValueFromOperand(access.operand) && !scalars.lookup(root))
      return op.emitOpError("can't be lowered for CUDA: operand #")
             << access.operand->getOperandNumber()
             << " is read before anything is written to it";
  }
  separate(plan, mapping);
  if (plan.parallelSize > 1)
    writeElements(plan, fixed, mapping);
  else
    writeScalars(plan, fixed, mapping);
  return success();
}
