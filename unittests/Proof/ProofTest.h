//===- ProofTest.h - A context that can execute programs --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_UNITTESTS_PROOF_PROOFTEST_H
#define TP_UNITTESTS_PROOF_PROOFTEST_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Pipelines/Pipelines.h"
#include "gtest/gtest.h"

namespace mlir::tp::test {

/// A context with all that a program and its lowering to linalg, which is what
/// is executed, may consist of.
class ProofTest : public testing::Test {
protected:
  explicit ProofTest(
      MLIRContext::Threading threading = MLIRContext::Threading::ENABLED)
      : context(threading) {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, math::MathDialect, nn::NNDialect,
                        scf::SCFDialect, tensor::TensorDialect, TPDialect,
                        tprt::TPRTDialect>();
  }

  MLIRContext context;
};

} // namespace mlir::tp::test

#endif // TP_UNITTESTS_PROOF_PROOFTEST_H
