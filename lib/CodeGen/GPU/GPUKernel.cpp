//===- GPUKernel.cpp - A kernel and its launch ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GPUKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::tp;

GPUKernel GPUKernel::create(gpu::GPUModuleOp module, Location loc,
                            StringRef name, TypeRange types) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> arguments;
  for (Type type : types)
    arguments.push_back(type.isIndex() ? b.getI64Type() : type);
  GPUKernel kernel;
  kernel.function = gpu::GPUFuncOp::create(
      b, loc, name, b.getFunctionType(arguments, {}), TypeRange(), TypeRange());
  kernel.function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                           b.getUnitAttr());
  return kernel;
}

void GPUKernel::setThreads(int64_t count) {
  block =
      std::min<int64_t>(llvm::alignTo(count, kWarpSize), kMaxElementwiseBlock);
  grid = llvm::divideCeil(count, block);
}

void GPUKernel::finish(OpBuilder &b) {
  gpu::ReturnOp::create(b, function.getLoc());
  auto dims = [&](int64_t x) {
    return b.getDenseI32ArrayAttr({static_cast<int32_t>(x), 1, 1});
  };
  function.setKnownBlockSizeAttr(dims(block));
  function.setKnownGridSizeAttr(dims(grid));
}

void GPUKernel::launch(OpBuilder &b, Location loc, ValueRange operands) const {
  auto size = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value one = size(1);
  SmallVector<Value> arguments;
  for (Value operand : operands)
    arguments.push_back(
        operand.getType().isIndex()
            ? arith::IndexCastOp::create(b, loc, b.getI64Type(), operand)
            : operand);
  gpu::LaunchFuncOp::create(b, loc, function,
                            gpu::KernelDim3{size(grid), one, one},
                            gpu::KernelDim3{size(block), one, one},
                            /*dynamicSharedMemorySize=*/Value(), arguments);
}

Value GPUKernel::getThread(OpBuilder &b, Location loc) {
  return gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
}
Value GPUKernel::getGlobalThread(OpBuilder &b, Location loc) const {
  Value id = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value first = arith::MulIOp::create(
      b, loc, id, arith::ConstantIndexOp::create(b, loc, block));
  return arith::AddIOp::create(b, loc, first, getThread(b, loc));
}
