//===- Buffers.cpp - Views of buffers -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Buffers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Dialect/TP/Elements.h"

using namespace mlir;

Value tp::getPointer(OpBuilder &b, Value buffer) {
  Location loc = buffer.getLoc();
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
  if (failed(type.getStridesAndOffset(strides, offset)) || offset != 0) {
    Value elements;
    if (ShapedType::isDynamic(offset))
      elements =
          memref::ExtractStridedMetadataOp::create(b, loc, buffer).getOffset();
    else
      elements = arith::ConstantIndexOp::create(b, loc, offset);
    Value size = arith::ConstantIndexOp::create(
        b, loc, getElementBytes(type.getElementType()));
    address = arith::AddIOp::create(
        b, loc, address, arith::MulIOp::create(b, loc, elements, size));
  }
  Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), integer);
}

SmallVector<Value> tp::getCapturedBuffers(Operation *op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::filter_to_vector(
      captured, [](Value value) { return isa<MemRefType>(value.getType()); });
}

bool tp::areDisjoint(Value x, Value y) {
  auto a = x.getDefiningOp<memref::SubViewOp>(),
       b = y.getDefiningOp<memref::SubViewOp>();
  auto isPlain = [](memref::SubViewOp op) {
    return llvm::none_of(op.getStaticOffsets(), ShapedType::isDynamic) &&
           llvm::none_of(op.getStaticSizes(), ShapedType::isDynamic) &&
           llvm::all_of(op.getStaticStrides(),
                        [](int64_t s) { return s == 1; });
  };
  if (!a || !b || a.getSource() != b.getSource() || !isPlain(a) || !isPlain(b))
    return false;
  for (auto [startA, sizeA, startB, sizeB] :
       llvm::zip_equal(a.getStaticOffsets(), a.getStaticSizes(),
                       b.getStaticOffsets(), b.getStaticSizes()))
    if (startA + sizeA <= startB || startB + sizeB <= startA)
      return true;
  return false;
}
