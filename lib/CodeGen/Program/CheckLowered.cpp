//===- CheckLowered.cpp - Ops that code generation doesn't know -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DescribeBoundary.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CHECKLOWERED
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class CheckLowered : public tp::impl::CheckLoweredBase<CheckLowered> {
  void runOnOperation() override {
    for (func::FuncOp program : getProgramFunctions(getOperation()))
      check(program);
    markAllAnalysesPreserved();
  }

  static bool isOnTensors(Operation *op) {
    auto isTensor = [](Type type) { return isa<TensorType>(type); };
    return llvm::any_of(op->getOperandTypes(), isTensor) ||
           llvm::any_of(op->getResultTypes(), isTensor);
  }

  void check(func::FuncOp program) {
    program.walk([&](Operation *op) {
      if (isa<func::FuncOp, func::ReturnOp>(op))
        return;
      if (isa_and_present<
              arith::ArithDialect, bufferization::BufferizationDialect,
              linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
              tensor::TensorDialect, tprt::TPRTDialect>(op->getDialect()) &&
          (!isOnTensors(op) || isa<bufferization::BufferizableOpInterface>(op)))
        return;
      InFlightDiagnostic error = op->emitError("'") << op->getName();
      if (isa_and_present<TPDialect>(op->getDialect()))
        error << "' isn't partitioned: " << kGlobalLevelHint;
      else
        error << "' can't be compiled: no lowering";
      signalPassFailure();
    });
  }
};

} // namespace
