//===- CodeGenPipeline.cpp - Pipelines to the LLVM dialect ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Dialect/Tosa/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::tp;

static void addCleanUp(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

/// On a device, each row has a block: the row's buffers are in shared memory,
/// and few rows mean few blocks. Sharing a nest saves launches: of small ops
/// always, and of longer ones unless a single block takes longer than these.
static FuseRowsOptions getRowsOnDevice() {
  FuseRowsOptions options;
  options.maxRowBytes = 40 * 1024;
  options.minRows = 1024;
  options.smallOp = 16 * 1024;
  options.maxSingleRow = 128 * 1024;
  return options;
}

void tp::buildLowerToArenaPipeline(OpPassManager &pm, bool isForDevice,
                                   bool describeArena) {
  auto cleanUp = [&] { addCleanUp(pm); };
  // One function of straight-line code.
  pm.addPass(createInlineModules());
  pm.addPass(createDropGradientForms());
  pm.addPass(createInlineCalls());
  // All layers are still here. They have no blocks to simplify, and without
  // that a second iteration changes no more than the order of ops.
  pm.addPass(createCanonicalizerPass(
      GreedyRewriteConfig()
          .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled)
          .setUseTopDownTraversal(true)
          .setMaxIterations(1)));
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createFlattenControlFlow());

  // nn, tosa and tp ops → linalg and runtime ops.
  pm.addPass(createLocateOrigins());
  if (!isForDevice) // where it still sees what is updated
    pm.addPass(createConvertConvolutionToTPRT());
  pm.addPass(createCreateEntryPoint());
  pm.addPass(createConvertTPToTPRT());
  OutlineRepeatsOptions outline;
  outline.onDevice = isForDevice;
  pm.addPass(createOutlineRepeats(outline));
  pm.addPass(createConvertAttentionToTPRT({/*onDevice=*/isForDevice}));
  if (!isForDevice)
    pm.addPass(createConvertRoutingToTPRT());
  pm.addPass(createConvertNNToLinalg({/*onDevice=*/isForDevice}));
  pm.addNestedPass<func::FuncOp>(tosa::createTosaMakeBroadcastablePass());
  pm.addNestedPass<func::FuncOp>(tosa::createTosaToLinalgNamed());
  pm.addNestedPass<func::FuncOp>(tosa::createTosaToLinalg());
  pm.addNestedPass<func::FuncOp>(createTosaToArithPass());
  pm.addNestedPass<func::FuncOp>(createTosaToTensorPass());
  pm.addPass(createMakeIntegersSignless());
  pm.addNestedPass<func::FuncOp>(createExpandTensorOps());
  pm.addPass(createCheckLowered());
  pm.addPass(createSymbolDCEPass());
  cleanUp();

  // Fusion.
  pm.addPass(createFoldTransposeIntoContraction());
  cleanUp();
  pm.addNestedPass<func::FuncOp>(createFuseElementwise());
  if (isForDevice) {
    pm.addNestedPass<func::FuncOp>(createSinkConcatenations());
    cleanUp();
    pm.addNestedPass<func::FuncOp>(createFuseElementwise());
    pm.addNestedPass<func::FuncOp>(createSplitReductions());
  }
  cleanUp();

  // Buffers. No CSE in between: it would share initial values again.
  pm.addNestedPass<func::FuncOp>(createJoinInsertions());
  pm.addNestedPass<func::FuncOp>(createSplitSharedInits());
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.allowReturnAllocsFromLoops = false;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  cleanUp();

  // Kernels and arena.
  pm.addNestedPass<func::FuncOp>(
      createConvertLinalgToGemm({/*cudaEpilogues=*/isForDevice}));
  if (isForDevice) {
    pm.addPass(
        createCanonicalizerPass()); // erases copies of a buffer to itself
    pm.addNestedPass<func::FuncOp>(createFuseSiblings());
  }
  pm.addNestedPass<func::FuncOp>(isForDevice ? createFuseRows(getRowsOnDevice())
                                             : createFuseRows());
  if (isForDevice) { // canonicalization would dissolve the nest of a single row
    pm.addPass(createCSEPass());
    pm.addNestedPass<func::FuncOp>(createCopyConstantsToDevice());
  } else {
    cleanUp();
  }
  pm.addPass(createOutlineKernels({/*wholeOnly=*/isForDevice}));
  pm.addPass(createPlanArena({/*describe=*/describeArena}));
}

void tp::buildLowerToLLVMPipeline(OpPassManager &pm) {
  auto cleanUp = [&] { addCleanUp(pm); };
  buildLowerToArenaPipeline(pm);
  pm.addPass(createInsertProfileMarks());
  // Code.
  pm.addPass(createMultithreadKernels());
  pm.addNestedPass<func::FuncOp>(createLowerKernels());
  pm.addPass(createConvertTPRTToCalls());
  cleanUp();
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertProgramToLLVM());
  cleanUp();
}

void tp::buildLowerToKernelsPipeline(OpPassManager &pm) {
  buildLowerToArenaPipeline(pm, /*isForDevice=*/true);
  pm.addPass(createInsertProfileMarks());
  pm.addPass(createMapKernelsToGPU());
  addCleanUp(pm);
}

void tp::buildLowerToCUDAPipeline(OpPassManager &pm) {
  auto cleanUp = [&] { addCleanUp(pm); };
  buildLowerToKernelsPipeline(pm);
  pm.addPass(createConvertTPRTToCalls());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertProgramToLLVM());
  cleanUp();
}

void tp::buildLowerKernelsToNVVMPipeline(OpPassManager &pm) {
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createConvertKernelsToNVVM());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  addCleanUp(kernels);
}

void tp::buildEmulateKernelsPipeline(OpPassManager &pm) {
  pm.addPass(createEmulateKernels());
  addCleanUp(pm);
}

void tp::registerLoweringPipelines() {
  PassPipelineRegistration<>("tp-lower-to-llvm",
                             "Lower a per-rank program to the LLVM dialect",
                             buildLowerToLLVMPipeline);
  PassPipelineRegistration<>(
      "tp-lower-to-kernels",
      "Lower a per-rank program to launches of a module of kernels",
      buildLowerToKernelsPipeline);
  PassPipelineRegistration<>(
      "tp-lower-to-cuda",
      "Lower a per-rank program to the LLVM dialect and a module of kernels",
      buildLowerToCUDAPipeline);
}

void tp::registerCodeGeneration(DialectRegistry &registry) {
  registry
      .insert<TPDialect, nn::NNDialect, tprt::TPRTDialect, arith::ArithDialect,
              bufferization::BufferizationDialect, cf::ControlFlowDialect,
              DLTIDialect, func::FuncDialect, gpu::GPUDialect,
              linalg::LinalgDialect, math::MathDialect, memref::MemRefDialect,
              NVVM::NVVMDialect, scf::SCFDialect, tensor::TensorDialect,
              tosa::TosaDialect, vector::VectorDialect>();
  func::registerInlinerExtension(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerAllDialectInterfaceImplementations(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}
