//===- IndexCheck.cpp - The kernel that checks indices --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GPUKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "tprt/abi.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::tp;

GPUKernel tp::createIndexCheck(gpu::GPUModuleOp module, StringRef name,
                               tprt::CheckIndexOp op) {
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(op.getIndices().getType());
  Builder types(op.getContext());
  Type i32 = types.getI32Type(), i64 = types.getI64Type();
  auto ptr = LLVM::LLVMPointerType::get(op.getContext());
  GPUKernel kernel = GPUKernel::create(module, loc, name, {ptr, ptr, i32, i64});
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  int64_t count = type.getNumElements();
  kernel.setThreads(std::max<int64_t>(count, 1));
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.function.getBody().front());
  auto arguments = kernel.function.getArguments();
  auto inside = [&](Value condition) {
    auto branch = scf::IfOp::create(b, loc, condition);
    b.setInsertionPointToStart(branch.thenBlock());
  };
  {
    OpBuilder::InsertionGuard guard(b);
    Value thread = kernel.getGlobalThread(b, loc);
    inside(
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, thread,
                              arith::ConstantIndexOp::create(b, loc, count)));
    Value at = arith::ConstantIndexOp::create(b, loc, 0);
    for (int64_t d = type.getRank() - 1; d >= 0; --d) {
      Value size = arith::ConstantIndexOp::create(b, loc, type.getDimSize(d));
      Value stride = arith::ConstantIndexOp::create(b, loc, strides[d]);
      Value i = arith::RemUIOp::create(b, loc, thread, size);
      at = arith::AddIOp::create(b, loc, at,
                                 arith::MulIOp::create(b, loc, i, stride));
      thread = arith::DivUIOp::create(b, loc, thread, size);
    }
    Value element = LLVM::GEPOp::create(
        b, loc, ptr, type.getElementType(), arguments[0],
        LLVM::GEPArg(arith::IndexCastOp::create(b, loc, i64, at).getResult()));
    Value index = LLVM::LoadOp::create(b, loc, type.getElementType(), element);
    if (index.getType() != i64)
      index = arith::ExtSIOp::create(b, loc, i64, index);
    // Negative indices are large as unsigned numbers.
    Value isBad = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                        index, arguments[3]);
    if (op.getIgnored()) {
      Value ignored = arith::ConstantOp::create(
          b, loc, b.getI64IntegerAttr(*op.getIgnored()));
      isBad = arith::AndIOp::create(
          b, loc, isBad,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, index,
                                ignored));
    }
    inside(isBad);
    static_assert(offsetof(tprt_device_error, site) == 0);
    Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(-1));
    Value exchanged = LLVM::AtomicCmpXchgOp::create(
        b, loc, arguments[1], none, arguments[2],
        LLVM::AtomicOrdering::monotonic, LLVM::AtomicOrdering::monotonic);
    inside(
        LLVM::ExtractValueOp::create(b, loc, exchanged, ArrayRef<int64_t>{1}));
    auto put = [&](size_t bytes, Value value) {
      Value address =
          LLVM::GEPOp::create(b, loc, ptr, i64, arguments[1],
                              LLVM::GEPArg(bytes / sizeof(int64_t)));
      LLVM::StoreOp::create(b, loc, value, address);
    };
    put(offsetof(tprt_device_error, index), index);
    put(offsetof(tprt_device_error, bound), arguments[3]);
  }
  kernel.finish(b);
  return kernel;
}
