//===- TensorBuilderTest.cpp - Ops in the dialect of a program ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Interfaces/TensorBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

/// A dialect with a reshape of its own.
struct OwnTensorBuilder : TensorBuilderInterface {
  using TensorBuilderInterface::TensorBuilderInterface;

  Value createReshape(OpBuilder &b, Location loc, RankedTensorType type,
                      Value value) const final {
    OperationState state(loc, "own.reshape", ValueRange(value),
                         TypeRange(type));
    return b.create(state)->getResult(0);
  }
};

struct OwnDialect : Dialect {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OwnDialect)
  static constexpr StringLiteral getDialectNamespace() { return "own"; }

  explicit OwnDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<OwnDialect>()) {
    allowUnknownOperations();
    addInterfaces<OwnTensorBuilder>();
  }
};

class TensorBuilders : public testing::Test {
protected:
  TensorBuilders() : b(&context), loc(b.getUnknownLoc()) {
    context.loadDialect<OwnDialect, arith::ArithDialect, linalg::LinalgDialect,
                        tensor::TensorDialect>();
    module = ModuleOp::create(loc);
    b.setInsertionPointToEnd(module->getBody());
    x = getTensor({4, 6});
  }

  Value getTensor(ArrayRef<int64_t> shape) {
    return tensor::EmptyOp::create(b, loc, shape, b.getF32Type());
  }

  const TensorBuilder &get() { return TensorBuilder::get(x.getDefiningOp()); }

  /// Checks what `value` is and that the module verifies.
  void check(Value value, StringRef op, ArrayRef<int64_t> shape) {
    EXPECT_EQ(value.getDefiningOp()->getName().getStringRef(), op);
    EXPECT_EQ(cast<RankedTensorType>(value.getType()).getShape(), shape);
    EXPECT_TRUE(succeeded(verify(*module)));
  }

  MLIRContext context;
  OpBuilder b;
  Location loc;
  OwningOpRef<ModuleOp> module;
  Value x;
};

TEST_F(TensorBuilders, DialectOfTheProgram) {
  EXPECT_EQ(&get(), &TensorBuilder::getUpstream());
  b.create(OperationState(loc, "own.op"));
  EXPECT_NE(&get(), &TensorBuilder::getUpstream());
  check(get().reshape(b, loc, x, {24}), "own.reshape", {24});
  // What the dialect doesn't define is upstream's.
  check(get().slice(b, loc, x, 1, 2, 3), "tensor.extract_slice", {4, 3});
}

TEST_F(TensorBuilders, NothingToDo) {
  EXPECT_EQ(get().reshape(b, loc, x, {4, 6}), x);
  EXPECT_EQ(get().transpose(b, loc, x, {0, 1}), x);
  EXPECT_EQ(get().slice(b, loc, x, 1, 0, 6), x);
  EXPECT_EQ(get().concat(b, loc, x, 0), x);
  EXPECT_EQ(get().broadcast(b, loc, x, cast<RankedTensorType>(x.getType())), x);
}

TEST_F(TensorBuilders, Reshapes) {
  check(get().reshape(b, loc, x, {24}), "tensor.collapse_shape", {24});
  check(get().reshape(b, loc, x, {2, 2, 6}), "tensor.expand_shape", {2, 2, 6});
  Value both = get().reshape(b, loc, getTensor({2, 3, 4}), {6, 2, 2});
  check(both, "tensor.expand_shape", {6, 2, 2});
  check(both.getDefiningOp()->getOperand(0), "tensor.collapse_shape", {6, 4});
  check(get().reshape(b, loc, getTensor({}), {1, 1}), "tensor.expand_shape",
        {1, 1});
  check(get().reshape(b, loc, getTensor({1, 1}), {}), "tensor.collapse_shape",
        {});
  // Empty dimensions correspond where they can.
  Value empty = get().reshape(b, loc, getTensor({6, 2, 0}), {2, 3, 2, 0});
  check(empty, "tensor.expand_shape", {2, 3, 2, 0});
  check(empty.getDefiningOp()->getOperand(0), "tensor.empty", {6, 2, 0});
  empty = get().reshape(b, loc, getTensor({3, 0, 2}), {3, 2, 0});
  check(empty.getDefiningOp()->getOperand(0), "tensor.collapse_shape", {3, 0});
  using Shape = SmallVector<int64_t>;
  for (const Shape &from : {Shape{0, 4}, Shape{0}, Shape{0, 2147483647}})
    for (const Shape &to : {Shape{2, 0}, Shape{0, 3, 5}, Shape{0, 0},
                            Shape{2147483647, 0}, Shape{1, 0, 1}})
      check(get().reshape(b, loc, getTensor(from), to), "tensor.expand_shape",
            to);
}

TEST_F(TensorBuilders, Upstream) {
  check(get().transpose(b, loc, x, {1, 0}), "linalg.transpose", {6, 4});
  check(get().concat(b, loc, {x, getTensor({4, 1})}, 1), "tensor.concat",
        {4, 7});
  // Dimensions of size 1 repeat, and missing ones.
  auto type = RankedTensorType::get({3, 4, 6}, b.getF32Type());
  Value row = get().broadcast(b, loc, getTensor({4, 1}), type);
  check(row, "linalg.broadcast", {3, 4, 6});
  EXPECT_EQ(cast<linalg::BroadcastOp>(row.getDefiningOp()).getDimensions(),
            (ArrayRef<int64_t>{0, 2}));
  check(get().add(b, loc, x, row, type), "arith.addf", {3, 4, 6});
  auto integers = RankedTensorType::get({2}, b.getI32Type());
  Value zeros =
      get().constant(b, loc, cast<ElementsAttr>(b.getZeroAttr(integers)));
  check(get().add(b, loc, zeros, zeros, integers), "arith.addi", {2});
}

} // namespace
