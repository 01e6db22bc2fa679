//===- ContractionShape.cpp - Sums of products ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Loops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

bool tp::isContraction(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() == 0)
    return false;
  for (AffineMap map : op.getIndexingMapsArray())
    if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return false;
  // If both inputs have all dimensions of the output, each of their elements is
  // used once: the op is a sum of elementwise products.
  auto isInBoth = [&](unsigned loop) {
    return llvm::all_of(op.getIndexingMapsArray(), [&](AffineMap map) {
      return map.isFunctionOfDim(loop);
    });
  };
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  bool reuses = false;
  for (auto [loop, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    reuses |= iterator == utils::IteratorType::parallel && !isInBoth(loop) &&
              sizes[loop] != 1;
  Block &body = op.getRegion().front();
  if (!reuses || body.getOperations().size() != 3)
    return false;
  Operation *mul = &body.front(), *add = mul->getNextNode();
  if (!isa<arith::MulFOp, arith::MulIOp>(mul) ||
      !isa<arith::AddFOp, arith::AddIOp>(add))
    return false;
  auto isPair = [](Operation *op, Value x, Value y) {
    return (op->getOperand(0) == x && op->getOperand(1) == y) ||
           (op->getOperand(0) == y && op->getOperand(1) == x);
  };
  return isPair(mul, body.getArgument(0), body.getArgument(1)) &&
         isPair(add, mul->getResult(0), body.getArgument(2)) &&
         body.getTerminator()->getOperand(0) == add->getResult(0);
}

void tp::widenContraction(linalg::GenericOp op) {
  Value narrow = op.getDpsInits().front();
  auto type = cast<MemRefType>(narrow.getType());
  if (!isa<FloatType>(type.getElementType()) ||
      type.getElementTypeBitWidth() >= 32)
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type f32 = b.getF32Type();
  Value wide =
      memref::AllocOp::create(b, MemRefType::get(type.getShape(), f32));
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(),
                                            utils::IteratorType::parallel);
  auto convert = [&](Value from, Value to) {
    linalg::GenericOp::create(
        b, from, to, ArrayRef<AffineMap>{identity, identity}, parallel,
        [](OpBuilder &b, Location loc, ValueRange args) {
          Value value;
          if (args[1].getType().isF32())
            value = arith::ExtFOp::create(b, loc, args[1].getType(), args[0]);
          else
            value = arith::TruncFOp::create(b, loc, args[1].getType(), args[0]);
          linalg::YieldOp::create(b, loc, value);
        });
  };
  convert(narrow, wide);
  auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  linalg::GenericOp::create(
      b, op.getDpsInputs(), wide, op.getIndexingMapsArray(),
      op.getIteratorTypesArray(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value x = arith::ExtFOp::create(b, loc, f32, args[0]);
        Value y = arith::ExtFOp::create(b, loc, f32, args[1]);
        Value product =
            arith::MulFOp::create(b, loc, x, y, arith::FastMathFlags::contract);
        linalg::YieldOp::create(
            b, loc,
            arith::AddFOp::create(b, loc, args[2], product, flags).getResult());
      });
  convert(wide, narrow);
  op.erase();
}

bool tp::visitsEachOnce(linalg::LinalgOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return false;
  ArrayRef<int64_t> shape = op.getShape(&operand);
  for (auto [size, expr] : llvm::zip_equal(shape, map.getResults()))
    if (isa<AffineConstantExpr>(expr) && size != 1)
      return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (auto [loop, size] : llvm::enumerate(sizes))
    if (size != 1 && !map.isFunctionOfDim(loop))
      return false;
  return true;
}

bool tp::isDataMovement(linalg::GenericOp op) {
  Block &body = op.getRegion().front();
  return op.getNumDpsInputs() == 1 && op.getNumDpsInits() == 1 &&
         op.getNumReductionLoops() == 0 && body.getOperations().size() == 1 &&
         body.getTerminator()->getOperand(0) == body.getArgument(0);
}
