//===- LoopPlan.cpp - Loops of a linalg op over threads -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopPlan.h"
#include "CodeGen/Loops/Buffers.h"
#include "CodeGen/Loops/Loops.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "tp/Dialect/TP/Elements.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tp;

/// The most lanes; more would only take registers.
static constexpr int64_t kMaxLanes = 8;

int64_t tp::getAlignment(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  Operation *producer = buffer.getDefiningOp();
  if (!isa_and_present<ViewLikeOpInterface>(producer))
    return kBufferAlignment / getElementBytes(type.getElementType());
  if (auto subview = dyn_cast<memref::SubViewOp>(producer)) {
    int64_t alignment = getAlignment(subview.getSource()), offset;
    SmallVector<int64_t> strides;
    if (failed(subview.getSourceType().getStridesAndOffset(strides, offset)))
      return 1;
    for (auto [stride, start] :
         llvm::zip_equal(strides, subview.getStaticOffsets()))
      alignment = std::gcd(
          alignment, ShapedType::isDynamic(start) ? stride : stride * start);
    return alignment;
  }
  if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(
          producer))
    return getAlignment(producer->getOperand(0));
  return 1;
}

/// The strides, by loop, and the offset of `operand`, a buffer; fails if its
/// map isn't linear.
static LogicalResult getStrides(linalg::GenericOp op, OpOperand &operand,
                                SmallVectorImpl<int64_t> &strides,
                                int64_t &offset) {
  SmallVector<int64_t> ofBuffer;
  int64_t start;
  if (failed(cast<MemRefType>(operand.get().getType())
                 .getStridesAndOffset(ofBuffer, start)) ||
      llvm::any_of(ofBuffer, ShapedType::isDynamic))
    return failure();
  AffineMap map = op.getMatchingIndexingMap(&operand);
  unsigned numLoops = op.getNumLoops();
  strides.assign(numLoops, 0);
  offset = 0;
  for (auto [stride, expr] : llvm::zip_equal(ofBuffer, map.getResults())) {
    SmallVector<int64_t> factors;
    if (failed(getFlattenedAffineExpr(expr, numLoops, 0, &factors)) ||
        factors.size() != numLoops + 1)
      return failure();
    for (unsigned d = 0; d < numLoops; ++d)
      strides[d] += stride * factors[d];
    offset += stride * factors.back();
  }
  return success();
}

/// Whether all accesses of `lanes` iterations of `loop` are of contiguous
/// elements and start at multiples of `lanes`.
static bool isAligned(const LoopPlan &plan, const LoopPlan::Access &access,
                      const LoopPlan::Loop &loop, int64_t lanes) {
  auto type = cast<MemRefType>(access.operand->get().getType());
  if (access.strides[loop.dims.back()] != 1 ||
      type.getElementType().isInteger(1) || access.offset % lanes != 0 ||
      getAlignment(access.operand->get()) % lanes != 0)
    return false;
  linalg::GenericOp op = plan.op;
  for (auto [d, size] : llvm::enumerate(op.getStaticLoopRanges()))
    if (!llvm::is_contained(loop.dims, d) && size != 1 &&
        access.strides[d] % lanes != 0)
      return false;
  return true;
}

/// Moves parallel loops that repeat an operand's elements behind the others, in
/// front of the innermost one: a block's threads then share these elements. The
/// innermost loop must fill the memory's sectors by itself.
static void nestRepeatingLoops(LoopPlan &plan) {
  constexpr int64_t kMinBytes = 128;
  if (plan.parallel.size() < 3)
    return;
  const LoopPlan::Loop &innermost = plan.parallel.back();
  auto fillsSectors = [&](const LoopPlan::Access &access) {
    int64_t stride = access.strides[innermost.dims.back()];
    Type element =
        cast<MemRefType>(access.operand->get().getType()).getElementType();
    return stride == 0 ||
           (stride == 1 &&
            innermost.size * getElementBytes(element) >= kMinBytes);
  };
  if (!llvm::all_of(plan.accesses, fillsSectors))
    return;
  std::stable_partition(plan.parallel.begin(), std::prev(plan.parallel.end()),
                        [&](const LoopPlan::Loop &loop) {
                          return llvm::none_of(
                              plan.accesses,
                              [&](const LoopPlan::Access &access) {
                                return access.strides[loop.dims.back()] == 0;
                              });
                        });
}

FailureOr<LoopPlan> LoopPlan::get(linalg::GenericOp op,
                                  llvm::SmallBitVector isFixed) {
  LoopPlan plan;
  plan.op = op;
  plan.isFixed = isFixed;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    Access access{&operand, {}, 0, false};
    if (failed(getStrides(op, operand, access.strides, access.offset)))
      return op.emitOpError("can't be lowered for CUDA: operand #")
             << operand.getOperandNumber() << " isn't linear in the loops";
    plan.accesses.push_back(std::move(access));
  }

  llvm::SmallBitVector isIndexed(op.getNumLoops());
  op.walk([&](linalg::IndexOp index) { isIndexed.set(index.getDim()); });
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (auto [d, iterator] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (isFixed[d] || sizes[d] == 1)
      continue;
    bool isParallel = iterator == utils::IteratorType::parallel;
    auto &loops = isParallel ? plan.parallel : plan.reduction;
    (isParallel ? plan.parallelSize : plan.reductionSize) *= sizes[d];
    bool isJoined =
        !loops.empty() && !isIndexed[d] && !isIndexed[loops.back().dims.back()];
    if (isJoined) {
      unsigned before = loops.back().dims.back();
      for (const Access &access : plan.accesses)
        isJoined &= access.strides[before] == access.strides[d] * sizes[d];
    }
    if (isJoined) {
      loops.back().dims.push_back(d);
      loops.back().size *= sizes[d];
    } else {
      loops.push_back({{static_cast<unsigned>(d)}, sizes[d]});
    }
  }
  nestRepeatingLoops(plan);
  if (plan.reductionSize > 1)
    for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
      Operation *combiner = getCombiner(op, i);
      if (!combiner) {
        plan.combiners.clear();
        break;
      }
      plan.combiners.push_back(combiner);
    }

  // Choose the lanes along the innermost loop that threads share.
  auto &shared = plan.isTeamReduction() ? plan.reduction : plan.parallel;
  if (shared.empty())
    return plan;
  unsigned innermost = shared.back().dims.back();
  auto isContiguous = [&](const Access &access) {
    auto type = cast<MemRefType>(access.operand->get().getType());
    return access.strides[innermost] == 1 &&
           !type.getElementType().isInteger(1);
  };
  int64_t least = kVectorBytes;
  for (const Access &access : plan.accesses)
    if (isContiguous(access))
      least = std::min(
          least,
          getElementBytes(cast<MemRefType>(access.operand->get().getType())
                              .getElementType()));
  auto isWorthwhile = [&](int64_t lanes) {
    if (shared.back().size % lanes != 0)
      return false;
    if (plan.isTeamReduction())
      return llvm::any_of(plan.accesses, [&](const Access &access) {
        return isAligned(plan, access, shared.back(), lanes);
      });
    return llvm::all_of(plan.accesses, [&](const Access &access) {
      return !op.isDpsInit(access.operand) ||
             isAligned(plan, access, shared.back(), lanes);
    });
  };
  int64_t lanes = std::min(kMaxLanes, kVectorBytes / least);
  while (lanes > 1 && !isWorthwhile(lanes))
    lanes /= 2;
  plan.lanes = lanes;
  for (Access &access : plan.accesses)
    access.isVector =
        lanes > 1 && isAligned(plan, access, shared.back(), lanes);
  return plan;
}

/// Elements along a side of a tile.
static constexpr int64_t kTileSide = 64;
/// Bytes of shared memory for all operands of a tile.
static constexpr int64_t kMaxTileBytes = 40 * 1024;

void LoopPlan::chooseTile() {
  if (parallel.size() < 2 || reductionSize > 1)
    return;
  const Loop &columns = parallel.back();
  // Fewer contiguous elements aren't worth a tile.
  constexpr int64_t kMinSize = 8;
  auto isTransposed = [&](const Access &access, const Loop &loop) {
    return !op.isDpsInit(access.operand) &&
           !cast<MemRefType>(access.operand->get().getType())
                .getElementType()
                .isInteger(1) &&
           access.strides[columns.dims.back()] != 0 &&
           access.strides[columns.dims.back()] != 1 &&
           access.strides[loop.dims.back()] == 1;
  };
  if (columns.size < kMinSize)
    return;
  for (auto [i, loop] : llvm::enumerate(ArrayRef(parallel).drop_back())) {
    if (loop.size < kMinSize ||
        llvm::none_of(
            accesses,
            [&](const Access &access) { return isTransposed(access, loop); }))
      continue;
    Tile chosen{static_cast<unsigned>(i), kTileSide, kTileSide};
    auto fit = [](int64_t &side, int64_t size) {
      side = std::min<int64_t>(side, llvm::PowerOf2Ceil(size));
    };
    fit(chosen.rows, loop.size);
    fit(chosen.columns, columns.size);
    int64_t bytes = 0;
    for (Access &access : accesses) {
      if (!isTransposed(access, loop))
        continue;
      int64_t width = getElementBytes(
          cast<MemRefType>(access.operand->get().getType()).getElementType());
      int64_t added = chosen.columns * (chosen.rows + 1) * width;
      if (bytes + added > kMaxTileBytes)
        continue; // loaded element by element
      bytes += added;
      access.tileLanes = std::min(kMaxLanes, kVectorBytes / width);
      while (access.tileLanes > 1 &&
             (loop.size % access.tileLanes != 0 ||
              !isAligned(*this, access, loop, access.tileLanes)))
        access.tileLanes /= 2;
    }
    tile = chosen;
    return;
  }
}

SmallVector<LoopPlan::Loop> LoopPlan::getTiles() const {
  SmallVector<Loop> tiles = parallel;
  tiles[tile->loop].size = llvm::divideCeil(tiles[tile->loop].size, tile->rows);
  tiles.back().size = llvm::divideCeil(tiles.back().size, tile->columns);
  return tiles;
}

const LoopPlan::Access *LoopPlan::getAccess(const OpOperand &operand) const {
  for (const Access &access : accesses)
    if (access.operand == &operand)
      return &access;
  return nullptr;
}
