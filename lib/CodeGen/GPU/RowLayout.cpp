//===- RowLayout.cpp - A kernel's rows over blocks and threads ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RowLayout.h"
#include "CodeGen/Loops/Buffers.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::tp;

/// Threads in a block of several short rows.
static constexpr int64_t kRowsBlock = 128;
static constexpr int64_t kMaxTeam = 1024;
/// The most parts of a row for one thread, if a smaller team can share them
/// evenly.
static constexpr int64_t kMaxParts = 8;

std::optional<int64_t> tp::getTripCount(scf::ForOp loop) {
  std::optional<int64_t> start = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (start != 0 || step != 1 || !end)
    return std::nullopt;
  return end;
}

bool tp::isRepeated(Operation *op) {
  return isa<ViewLikeOpInterface, memref::GetGlobalOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>() ||
         (isMemoryEffectFree(op) && op->getNumRegions() == 0);
}

/// By how many elements `buffer` moves if `iv` grows by 1.
static int64_t getStride(Value buffer, Value iv) {
  int64_t sum = 0;
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    if (auto subview = dyn_cast<memref::SubViewOp>(view.getOperation())) {
      SmallVector<int64_t> strides;
      int64_t offset;
      if (succeeded(
              subview.getSourceType().getStridesAndOffset(strides, offset)))
        for (auto [stride, start] :
             llvm::zip_equal(strides, subview.getMixedOffsets()))
          if (dyn_cast<Value>(start) == iv)
            sum += stride;
    }
    buffer = view.getViewSource();
  }
  return sum;
}

/// Whether the operands are contiguous along consecutive rows instead of within
/// a row.
static bool isAlongRows(KernelRows &rows) {
  int64_t votes = 0;
  for (const LoopPlan &plan : rows.plans) {
    const auto &shared = plan.parallelSize > 1 ? plan.parallel : plan.reduction;
    if (shared.empty())
      continue;
    for (const LoopPlan::Access &access : plan.accesses) {
      int64_t along = rows.loops.empty()
                          ? access.strides[rows.dims.back()]
                          : getStride(access.operand->get(),
                                      rows.loops.back().getInductionVar());
      int64_t inside = access.strides[shared.back().dims.back()];
      if (inside == 1)
        --votes;
      else if (inside != 0 && along == 1)
        ++votes;
    }
  }
  return votes > 0;
}

RowLayout tp::chooseRowLayout(KernelRows &rows, int64_t sharedBytes) {
  RowLayout layout;
  layout.rows = llvm::product_of(rows.sizes);
  int64_t parts = 1;
  for (const LoopPlan &plan : rows.plans)
    parts = std::max(parts, plan.getNumParts());
  auto roundUp = [](int64_t count, int64_t most) {
    return std::min<int64_t>(llvm::PowerOf2Ceil(std::max<int64_t>(count, 1)),
                             most);
  };
  bool hasRows = !rows.sizes.empty();
  if (hasRows && sharedBytes == 0 && isAlongRows(rows)) {
    layout.isInterleaved = true;
    layout.teams = kWarpSize;
    layout.team = roundUp(parts / 8, kMaxTeam / kWarpSize);
    return layout;
  }
  layout.team = roundUp(llvm::divideCeil(parts, 2), kMaxTeam);
  // Give each thread two parts or more, and all threads the same number.
  for (int64_t team = layout.team; team * kMaxParts >= parts; team /= 2)
    if (parts % team == 0) {
      layout.team = team;
      break;
    }
  layout.teams = std::max<int64_t>(kRowsBlock / layout.team, 1);
  while (layout.teams > 1 && layout.teams * layout.team > kWarpSize &&
         (layout.teams / 2 >= layout.rows ||
          layout.teams * sharedBytes > kMaxSharedBytes / 2))
    layout.teams /= 2;
  return layout;
}

FailureOr<KernelRows> tp::getKernelRows(Operation *root) {
  KernelRows rows;
  if (auto op = dyn_cast<linalg::GenericOp>(root)) {
    llvm::SmallBitVector isFixed(op.getNumLoops());
    SmallVector<int64_t> sizes = op.getStaticLoopRanges();
    for (auto [d, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
      if (iterator == utils::IteratorType::parallel && sizes[d] > 1) {
        isFixed.set(d);
        rows.dims.push_back(d);
        rows.sizes.push_back(sizes[d]);
      }
    FailureOr<LoopPlan> plan = LoopPlan::get(op, isFixed);
    if (failed(plan))
      return failure();
    rows.plans.push_back(*plan);
    return rows;
  }
  auto loop = cast<scf::ForOp>(root);
  while (true) {
    std::optional<int64_t> size = getTripCount(loop);
    if (!size || loop.getNumResults() != 0)
      return loop.emitOpError(
          "can't be lowered for CUDA: not a plain loop over rows");
    rows.loops.push_back(loop);
    rows.sizes.push_back(*size);
    auto inner = dyn_cast<scf::ForOp>(loop.getBody()->front());
    if (!inner || inner->getNextNode() != loop.getBody()->getTerminator())
      break;
    loop = inner;
  }
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic) {
      if (!isRepeated(&op))
        return op.emitOpError("can't be lowered for CUDA between linalg ops");
      continue;
    }
    FailureOr<LoopPlan> plan =
        LoopPlan::get(generic, llvm::SmallBitVector(generic.getNumLoops()));
    if (failed(plan))
      return failure();
    rows.plans.push_back(*plan);
    // Rows run at the same time, so they must write different elements.
    for (Value init : generic.getDpsInits())
      for (auto [loop, size] : llvm::zip_equal(rows.loops, rows.sizes))
        if (size > 1 && isa<BlockArgument>(getRootBuffer(init)) &&
            getStride(init, loop.getInductionVar()) == 0)
          return generic.emitOpError("can't be lowered for CUDA: all rows "
                                     "write the same elements");
  }
  return rows;
}
