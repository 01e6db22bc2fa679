//===- LoopPlan.cpp - what threads do for a linalg op ---------------------===//

#include "Buffers.h"
#include "ThreadLoops.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tp;

/// Lanes at most: more would only take registers.
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

/// The strides, by loop, and the offset of `operand`, a buffer; fails where its
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

Operation *tp::getCombiner(linalg::GenericOp op, unsigned i) {
  SmallVector<Operation *> ops;
  if (!matchReduction(op.getRegionOutputArgs(), i, ops) || ops.size() != 1 ||
      !ops[0]->hasTrait<OpTrait::IsCommutative>() ||
      !arith::getNeutralElement(ops[0]))
    return nullptr;
  if (isa<arith::AddFOp, arith::MulFOp>(ops[0])) {
    auto flags = cast<arith::ArithFastMathInterface>(ops[0])
                     .getFastMathFlagsAttr()
                     .getValue();
    if (!arith::bitEnumContainsAll(flags, arith::FastMathFlags::reassoc))
      return nullptr;
  }
  return ops[0];
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
  if (plan.reductionSize > 1)
    for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
      Operation *combiner = getCombiner(op, i);
      if (!combiner) {
        plan.combiners.clear();
        break;
      }
      plan.combiners.push_back(combiner);
    }

  // Lanes, along the innermost of the loops that threads share.
  auto &shared = plan.isTeamReduction() ? plan.reduction : plan.parallel;
  if (shared.empty())
    return plan;
  unsigned innermost = shared.back().dims.back();
  auto isContiguous = [&](const Access &access) {
    auto type = cast<MemRefType>(access.operand->get().getType());
    return access.strides[innermost] == 1 &&
           !type.getElementType().isInteger(1);
  };
  auto isAligned = [&](const Access &access, int64_t lanes) {
    if (!isContiguous(access) || access.offset % lanes != 0 ||
        getAlignment(access.operand->get()) % lanes != 0)
      return false;
    for (unsigned d = 0; d < op.getNumLoops(); ++d)
      if (!llvm::is_contained(shared.back().dims, d) && sizes[d] != 1 &&
          access.strides[d] % lanes != 0)
        return false;
    return true;
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
        return isAligned(access, lanes);
      });
    return llvm::all_of(plan.accesses, [&](const Access &access) {
      return !op.isDpsInit(access.operand) || isAligned(access, lanes);
    });
  };
  int64_t lanes = std::min(kMaxLanes, kVectorBytes / least);
  while (lanes > 1 && !isWorthwhile(lanes))
    lanes /= 2;
  plan.lanes = lanes;
  for (Access &access : plan.accesses)
    access.isVector = lanes > 1 && isAligned(access, lanes);
  return plan;
}

const LoopPlan::Access *LoopPlan::getAccess(const OpOperand &operand) const {
  for (const Access &access : accesses)
    if (access.operand == &operand)
      return &access;
  return nullptr;
}
