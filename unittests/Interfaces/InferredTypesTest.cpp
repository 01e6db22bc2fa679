//===- InferredTypesTest.cpp - Result types of invalid ops ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "tp/Dialect/NN/NN.h"
#include "gtest/gtest.h"

using namespace mlir;

/// A builder gives an op with wrong operands, which the verifier refuses. It
/// doesn't end the process.
TEST(InferredTypes, LeaveInvalidOpsToTheVerifier) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &) {});
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  auto getTensor = [&](ArrayRef<int64_t> shape) -> Value {
    return nn::ParameterOp::create(
        b, loc, RankedTensorType::get(shape, b.getF32Type()), "w");
  };
  Value scalar = getTensor({}), row = getTensor({3}),
        matrix = getTensor({4, 5});
  Operation *ops[] = {
      nn::LinearOp::create(b, loc, scalar, matrix),
      nn::MatmulOp::create(b, loc, row, matrix),
      nn::AddOp::create(b, loc, row, matrix),
      nn::TransposeOp::create(b, loc, matrix, ArrayRef<int64_t>{0, 2}),
      nn::ConcatOp::create(b, loc, ValueRange{row, matrix}, 0),
      nn::OuterSumOp::create(b, loc, scalar, matrix),
  };
  for (Operation *op : ops)
    EXPECT_TRUE(failed(verify(op))) << op->getName().getStringRef().str();
}
