//===- PredictMemory.cpp - The arena before code is generated -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/ArenaUse.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/ScopeExit.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PREDICTMEMORY
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class PredictMemory : public tp::impl::PredictMemoryBase<PredictMemory> {
public:
  using PredictMemoryBase::PredictMemoryBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // A pass can only run a pipeline on ops inside its own operation.
    ModuleOp copy = module.clone();
    module.push_back(copy);
    auto eraseCopy = llvm::scope_exit([&] { copy.erase(); });
    OpPassManager pm(ModuleOp::getOperationName());
    buildLowerToArenaPipeline(pm, onDevice, /*describeArena=*/true);
    if (failed(runPipeline(pm, copy)))
      return signalPassFailure();
    auto bytes = getManifest(copy).getAs<IntegerAttr>("arena_bytes");
    if (!bytes) {
      module.emitError("no function that ranks run; the arena of none can be "
                       "predicted");
      return signalPassFailure();
    }
    module->setAttr(kArenaBytesAttr, bytes);
    if (Attribute use = copy->getAttr(kArenaUseAttr))
      module->setAttr(kArenaUseAttr, use);
    else
      module->removeAttr(kArenaUseAttr);
  }
};

} // namespace
