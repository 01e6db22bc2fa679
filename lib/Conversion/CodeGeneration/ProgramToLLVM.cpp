//===- ProgramToLLVM.cpp - the LLVM dialect and the exported entry --------===//

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/Conversion/Manifest.h"
#include "tp/Conversion/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTPROGRAMTOLLVM
#include "tp/Conversion/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// How many arguments of `@main` have each role.
struct Signature {
  size_t inputs, parameters, outputs;
  bool hasArena;
};

/// int32_t tpx_main(ctx, rank, inputs, parameters, outputs, arena): reads the
/// buffers' addresses out of the tables and calls `main`.
void buildEntry(ModuleOp module, LLVM::LLVMFuncOp main,
                const Signature &signature) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Location loc = main.getLoc();
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  auto type = LLVM::LLVMFunctionType::get(
      b.getI32Type(), {ptr, b.getI64Type(), ptr, ptr, ptr, ptr});
  auto entry = LLVM::LLVMFuncOp::create(b, loc, "tpx_main", type);
  Block *body = entry.addEntryBlock(b);
  b.setInsertionPointToStart(body);

  SmallVector<Value> arguments{body->getArgument(0), body->getArgument(1)};
  auto appendTable = [&](Value table, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      Value slot = LLVM::GEPOp::create(b, loc, ptr, ptr, table,
                                       LLVM::GEPArg(static_cast<int32_t>(i)));
      arguments.push_back(LLVM::LoadOp::create(b, loc, ptr, slot));
    }
  };
  appendTable(body->getArgument(2), signature.inputs);
  appendTable(body->getArgument(3), signature.parameters);
  appendTable(body->getArgument(4), signature.outputs);
  if (signature.hasArena)
    arguments.push_back(body->getArgument(5));
  Value status = LLVM::CallOp::create(b, loc, main, arguments).getResult();
  LLVM::ReturnOp::create(b, loc, status);
}

class ConvertProgramToLLVM
    : public tp::impl::ConvertProgramToLLVMBase<ConvertProgramToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    if (!main) {
      module.emitError("there is no function '@main'");
      return signalPassFailure();
    }
    Signature signature{getArguments(main, Role::Input).size(),
                        getArguments(main, Role::Parameter).size(),
                        getArguments(main, Role::Output).size(),
                        !getArguments(main, Role::Arena).empty()};
    prepareFunctions(main);

    MLIRContext *context = &getContext();
    RewritePatternSet expand(context);
    memref::populateExpandStridedMetadataPatterns(expand);
    if (failed(applyPatternsGreedily(module, std::move(expand))))
      return signalPassFailure();

    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    LLVMConversionTarget target(*context);
    target.addLegalOp<ModuleOp>();
    RewritePatternSet patterns(context);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    // The C library only where LLVM has no intrinsic.
    populateMathToLLVMConversionPatterns(converter, patterns,
                                         /*approximateLog1p=*/false,
                                         /*benefit=*/2);
    populateMathToLibmConversionPatterns(patterns, /*benefit=*/1);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    if (failed(applyFullConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    buildEntry(module, module.lookupSymbol<LLVM::LLVMFuncOp>("main"),
               signature);
  }

  /// All functions with bodies are internal. Kernels aren't inlined: that would
  /// only repeat them in every layer.
  void prepareFunctions(func::FuncOp main) {
    Builder b(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      function->setAttr(
          "llvm.linkage",
          LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal));
      if (function != main)
        function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
      else
        for (unsigned i = 0; i < main.getNumArguments(); ++i)
          main.removeArgAttr(i, kRoleAttr);
    }
  }
};

} // namespace
