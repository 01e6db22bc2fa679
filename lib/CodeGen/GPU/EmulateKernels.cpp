//===- EmulateKernels.cpp - Kernels as functions of the host --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/BFloat16Bits.h"
#include "CodeGen/Loops/Buffers.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/TP/Elements.h"

namespace mlir::tp {
#define GEN_PASS_DEF_EMULATEKERNELS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// A kernel before it is lowered; kept for the entry that calls it.
struct Kernel {
  std::string name;
  size_t numParameters;
  SmallVector<int64_t> shared; ///< where each shared buffer starts
  int64_t sharedBytes = 0;
  int32_t maxThreads = 1024; ///< of a block
};

class EmulateKernels : public tp::impl::EmulateKernelsBase<EmulateKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    ptr = LLVM::LLVMPointerType::get(context);
    SmallVector<Kernel> kernels;
    for (auto gpuModule :
         llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
      for (Operation &op : llvm::make_early_inc_range(*gpuModule.getBody())) {
        if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op))
          kernels.push_back(toFunction(kernel));
        else
          op.moveBefore(gpuModule);
      }
      gpuModule.erase();
    }

    RewritePatternSet expand(context);
    arith::populateExpandBFloat16Patterns(expand);
    arith::populateCeilFloorDivExpandOpsPatterns(expand);
    math::populateExpansionPatterns(expand, {StringRef("rsqrt")});
    if (failed(applyPatternsGreedily(module, std::move(expand))))
      return signalPassFailure();

    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    populateGpuMemorySpaceAttributeConversions(
        converter, [](gpu::AddressSpace) { return 0; });
    LLVMConversionTarget target(*context);
    target.addLegalOp<ModuleOp>();
    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns,
                                         /*approximateLog1p=*/false,
                                         /*benefit=*/2);
    populateMathToLibmConversionPatterns(patterns, /*benefit=*/1);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    if (failed(applyFullConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    replaceBFloat16ByBits(module);
    for (const Kernel &kernel : kernels)
      addEntry(kernel);
  }

  /// func @kernel_body(self, parameters…, shared buffers…).
  Kernel toFunction(gpu::GPUFuncOp source) {
    Kernel kernel{source.getName().str(), source.getNumArguments(), {}, 0};
    if (DenseI32ArrayAttr size = source.getKnownBlockSizeAttr())
      kernel.maxThreads = llvm::product_of(size.asArrayRef());
    for (BlockArgument buffer : source.getWorkgroupAttributions()) {
      kernel.shared.push_back(kernel.sharedBytes);
      kernel.sharedBytes +=
          llvm::alignTo(getTensorBytes(buffer.getType()), kBufferAlignment);
    }
    OpBuilder b(getOperation().getBody(), getOperation().getBody()->end());
    Location loc = source.getLoc();
    SmallVector<Type> types{ptr};
    llvm::append_range(types, source.getBody().getArgumentTypes());
    auto function = func::FuncOp::create(b, loc, kernel.name + "_body",
                                         b.getFunctionType(types, {}));
    function->setAttr(
        "llvm.linkage",
        LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
    function.getBody().takeBody(source.getBody());
    Value self = function.getBody().insertArgument(0u, ptr, loc);
    function.walk([&](Operation *op) { replace(op, self); });
    return kernel;
  }

  /// Replaces an op of the gpu dialect by its counterpart in the emulator.
  void replace(Operation *op, Value self) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    Type i32 = b.getI32Type();
    auto readField = [&](int32_t number) {
      Value address =
          LLVM::GEPOp::create(b, loc, ptr, i32, self, LLVM::GEPArg(number));
      Value value = LLVM::LoadOp::create(b, loc, i32, address);
      op->replaceAllUsesWith(ValueRange(
          arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value)
              .getResult()));
    };
    if (isa<gpu::ThreadIdOp>(op)) {
      readField(0);
    } else if (isa<gpu::BlockIdOp>(op)) {
      readField(1);
    } else if (isa<gpu::BarrierOp>(op)) {
      call(b, loc, "tp_emulated_barrier", {}, self);
    } else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
      Value other = call(b, loc, "tp_emulated_shuffle_xor", i32,
                         {self, shuffle.getValue(), shuffle.getOffset()})
                        .getResult(0);
      shuffle.getShuffleResult().replaceAllUsesWith(other);
    } else if (isa<gpu::ReturnOp>(op)) {
      func::ReturnOp::create(b, loc);
    } else {
      return;
    }
    op->erase();
  }

  func::CallOp call(OpBuilder &b, Location loc, StringRef callee,
                    TypeRange results, ValueRange arguments) {
    auto function = getOperation().lookupSymbol<func::FuncOp>(callee);
    if (!function) {
      OpBuilder atEnd = OpBuilder::atBlockEnd(getOperation().getBody());
      function = func::FuncOp::create(
          atEnd, loc, callee, b.getFunctionType(arguments.getTypes(), results));
      function.setPrivate();
    }
    return func::CallOp::create(b, loc, function, arguments);
  }

  /// void kernel(self, arguments), and the constants beside it.
  void addEntry(const Kernel &kernel) {
    auto body =
        getOperation().lookupSymbol<LLVM::LLVMFuncOp>(kernel.name + "_body");
    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    Location loc = body.getLoc();
    Type i32 = b.getI32Type();
    auto addConstant = [&](StringRef name, int32_t value) {
      LLVM::GlobalOp::create(b, loc, i32, /*isConstant=*/true,
                             LLVM::Linkage::External, kernel.name + name.str(),
                             b.getI32IntegerAttr(value));
    };
    addConstant("_num_arguments", kernel.numParameters);
    addConstant("_shared_bytes", kernel.sharedBytes);
    addConstant("_max_threads", kernel.maxThreads);
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(b.getContext()), {ptr, ptr});
    auto entry = LLVM::LLVMFuncOp::create(b, loc, kernel.name, type);
    b.setInsertionPointToStart(entry.addEntryBlock(b));
    Value self = entry.getArgument(0), table = entry.getArgument(1);
    SmallVector<Value> arguments{self};
    ArrayRef<Type> types = body.getArgumentTypes();
    for (size_t i = 0; i < kernel.numParameters; ++i) {
      Value slot = LLVM::GEPOp::create(b, loc, ptr, ptr, table,
                                       LLVM::GEPArg(static_cast<int32_t>(i)));
      Value address = LLVM::LoadOp::create(b, loc, ptr, slot);
      arguments.push_back(LLVM::LoadOp::create(b, loc, types[i + 1], address));
    }
    if (!kernel.shared.empty()) {
      // The address of shared memory is behind the four numbers.
      Value slot = LLVM::GEPOp::create(b, loc, ptr, ptr, self, LLVM::GEPArg(2));
      Value shared = LLVM::LoadOp::create(b, loc, ptr, slot);
      for (int64_t offset : kernel.shared)
        arguments.push_back(
            LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), shared,
                                LLVM::GEPArg(static_cast<int32_t>(offset))));
    }
    LLVM::CallOp::create(b, loc, body, arguments);
    LLVM::ReturnOp::create(b, loc, ValueRange());
  }

  Type ptr;
};

} // namespace
