//===- Loops.cpp - Loops of linalg ops on buffers -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Loops.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::tp;

unsigned tp::getContiguousLoop(linalg::GenericOp op) {
  // Elements of the operands that are contiguous along each loop.
  SmallVector<int64_t> counts(op.getNumLoops(), 0);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!type || failed(type.getStridesAndOffset(strides, offset)))
      continue;
    // The sizes that threads share are dynamic, and the same for all operands.
    int64_t numElements = 1;
    for (int64_t size : type.getShape())
      if (!ShapedType::isDynamic(size))
        numElements *= size;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr);
          dim && strides[i] == 1 && type.getDimSize(i) != 1)
        counts[dim.getPosition()] += numElements;
  }
  unsigned best = 0;
  auto isBetter = [&](unsigned loop) {
    if (counts[loop] != counts[best])
      return counts[loop] > counts[best];
    SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
    return kinds[loop] == utils::IteratorType::reduction ||
           kinds[best] != utils::IteratorType::reduction;
  };
  for (unsigned loop = 1; loop < op.getNumLoops(); ++loop)
    if (isBetter(loop))
      best = loop;
  return best;
}

SmallVector<unsigned> tp::getLoopOrder(linalg::GenericOp op) {
  SmallVector<unsigned> order;
  auto append = [&](utils::IteratorType kind) {
    for (auto [d, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
      if (iterator == kind)
        order.push_back(d);
  };
  append(utils::IteratorType::parallel);
  append(utils::IteratorType::reduction);
  if (order.empty())
    return order;
  unsigned innermost = getContiguousLoop(op);
  llvm::erase(order, innermost);
  order.push_back(innermost);
  return order;
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
