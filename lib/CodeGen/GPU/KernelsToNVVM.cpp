//===- KernelsToNVVM.cpp - Kernels in the NVVM dialect --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTKERNELSTONVVM
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;

namespace {

/// 32 if that is enough for all offsets, in elements; otherwise 64.
unsigned getIndexWidth(gpu::GPUModuleOp module) {
  bool isWide = false;
  auto visit = [&](Type type) {
    auto buffer = dyn_cast<MemRefType>(type);
    isWide |=
        buffer && buffer.getNumElements() > std::numeric_limits<int32_t>::max();
  };
  module.walk([&](Operation *op) {
    llvm::for_each(op->getResultTypes(), visit);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArgumentTypes(), visit);
  });
  return isWide ? 64 : 32;
}

class ConvertKernelsToNVVM
    : public tp::impl::ConvertKernelsToNVVMBase<ConvertKernelsToNVVM> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    RewritePatternSet expand(context);
    arith::populateCeilFloorDivExpandOpsPatterns(expand);
    if (failed(applyPatternsGreedily(module, std::move(expand))))
      return signalPassFailure();

    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    options.overrideIndexBitwidth(getIndexWidth(module));
    LLVMTypeConverter converter(context, options);
    configureGpuToNVVMTypeConverter(converter);
    LLVMConversionTarget target(*context);
    configureGpuToNVVMConversionLegality(target);
    RewritePatternSet patterns(context);
    populateGpuToNVVMConversionPatterns(converter, patterns, /*benefit=*/2);
    populateMathToLLVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    module.walk([&](Operation *op) {
      if (isa<gpu::GPUModuleOp>(op))
        return;
      if (isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect()))
        return;
      op->emitOpError("can't be lowered for CUDA");
      signalPassFailure();
    });
  }
};

} // namespace
