//===- RuntimeABITest.cpp - Arguments of runtime calls --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the structures that generated code passes by the names of their members
// in the runtime's abi.h.
//
//===----------------------------------------------------------------------===//

#include "CodeGen/CPU/RuntimeABI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

class RuntimeABI : public testing::Test {
protected:
  /// The op in a function with these parameters.
  template <typename OpT>
  OpT parse(StringRef parameters, StringRef op) {
    context.loadDialect<func::FuncDialect, tprt::TPRTDialect>();
    module = parseSourceString<ModuleOp>(
        ("func.func @main(" + parameters + ") {\n" + op + "\nreturn\n}").str(),
        &context);
    EXPECT_TRUE(module);
    OpT found;
    module->walk([&](OpT op) { found = op; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(RuntimeABI, Gemm) {
  tprt_gemm_args args = getRuntimeArguments(parse<tprt::GemmOp>(
      "%a: memref<6x2x8x4xbf16>, %b: memref<6x2x16x4xbf16>, "
      "%c: memref<6x2x8x16xbf16>, %d: memref<8x20xbf16>, "
      "%e: memref<6x8x24xbf16>",
      "tprt.gemm %a, %b into %c addend %d [20, 0, 0] activation gelu_tanh "
      "factor %e [24, 192, 0] sizes [8, 16, 4] batch [6, 2] a [4, 1, 64, 32] "
      "b [1, 4, 128, 65] c [16, 256, 129] : memref<6x2x8x4xbf16>, "
      "memref<6x2x16x4xbf16>, memref<6x2x8x16xbf16> addend memref<8x20xbf16> "
      "factor memref<6x8x24xbf16>"));
  EXPECT_EQ(args.dtype, TPRT_BF16);
  EXPECT_EQ(args.accumulate, 0);
  EXPECT_EQ(args.batch0, 6);
  EXPECT_EQ(args.batch1, 2);
  EXPECT_EQ(args.m, 8);
  EXPECT_EQ(args.n, 16);
  EXPECT_EQ(args.k, 4);
  EXPECT_EQ(args.a_row, 4);
  EXPECT_EQ(args.a_col, 1);
  EXPECT_EQ(args.a_b0, 64);
  EXPECT_EQ(args.a_b1, 32);
  EXPECT_EQ(args.b_row, 1);
  EXPECT_EQ(args.b_col, 4);
  EXPECT_EQ(args.b_b0, 128);
  EXPECT_EQ(args.b_b1, 65);
  EXPECT_EQ(args.c_row, 16);
  EXPECT_EQ(args.c_b0, 256);
  EXPECT_EQ(args.c_b1, 129);
  EXPECT_EQ(args.activation, TPRT_GELU_TANH);
  EXPECT_EQ(args.addend_row, 20);
  EXPECT_EQ(args.addend_b0, 0);
  EXPECT_EQ(args.factor_row, 24);
  EXPECT_EQ(args.factor_b0, 192);
  EXPECT_EQ(args.factor_b1, 0);
}

TEST_F(RuntimeABI, Activations) {
  std::pair<const char *, tprt_activation> cases[] = {
      {"", TPRT_NO_ACTIVATION},
      {"activation relu", TPRT_RELU},
      {"activation gelu", TPRT_GELU},
      {"activation gelu_tanh", TPRT_GELU_TANH},
      {"activation silu", TPRT_SILU}};
  for (auto [text, number] : cases)
    EXPECT_EQ(getRuntimeArguments(
                  parse<tprt::GemmOp>(
                      "%a: memref<4x4xf64>",
                      ("tprt.gemm %a, %a into %a " + Twine(text) +
                       " sizes [4, 4, 4] batch [1, 1] a [4, 1, 0, 0] "
                       "b [4, 1, 0, 0] c [4, 0, 0] : memref<4x4xf64>, "
                       "memref<4x4xf64>, memref<4x4xf64>")
                          .str()))
                  .activation,
              number)
        << text;
}

/// Batches are aligned at the right, behind loops that run once.
TEST_F(RuntimeABI, AttentionGradient) {
  tprt_attention_gradient_args all =
      getRuntimeArguments(parse<tprt::AttentionGradientOp>(
          "%q: memref<3x7x8xf16>, %k: memref<5x8xf16>, %v: memref<5x6xf16>, "
          "%m: memref<7x5xi1>, %g: memref<7x3x6xf16>, %qg: memref<3x7x8xf16>, "
          "%kg: memref<3x5x8xf16>, %vg: memref<3x6x5xf16>",
          R"(tprt.attention_gradient causal %q, %k, %v gradient %g mask %m
          into %qg, %kg, %vg scale 0.5 maps [
            affine_map<(h, t, s, d, e) -> (h, t, d)>,
            affine_map<(h, t, s, d, e) -> (s, d)>,
            affine_map<(h, t, s, d, e) -> (s, e)>,
            affine_map<(h, t, s, d, e) -> (t, h, e)>,
            affine_map<(h, t, s, d, e) -> (t, s)>,
            affine_map<(h, t, s, d, e) -> (h, t, d)>,
            affine_map<(h, t, s, d, e) -> (h, s, d)>,
            affine_map<(h, t, s, d, e) -> (h, e, s)>]
          : memref<3x7x8xf16>, memref<5x8xf16>, memref<5x6xf16>
            gradient memref<7x3x6xf16> mask memref<7x5xi1>
            into memref<3x7x8xf16>, memref<3x5x8xf16>, memref<3x6x5xf16>)"));
  const tprt_attention_args &args = all.attention;
  EXPECT_EQ(args.dtype, TPRT_F16);
  EXPECT_EQ(args.mask, TPRT_BOOLEAN_MASK);
  EXPECT_EQ(args.scale, 0.5);
  EXPECT_EQ(args.causal, 1);
  EXPECT_EQ(args.rows, 7);
  EXPECT_EQ(args.columns, 5);
  EXPECT_EQ(args.depth, 8);
  EXPECT_EQ(args.width, 6);
  constexpr int heads = TPRT_ATTENTION_BATCHES - 1;
  EXPECT_EQ(args.batch[0], 1);
  EXPECT_EQ(args.batch[heads], 3);
  auto check = [&](const tprt_attention_strides &strides, int64_t head,
                   int64_t row, int64_t col) {
    EXPECT_EQ(strides.batch[0], 0);
    EXPECT_EQ(strides.batch[heads], head);
    EXPECT_EQ(strides.row, row);
    EXPECT_EQ(strides.col, col);
  };
  check(args.query, 56, 8, 1);
  check(args.key, 0, 8, 1);
  check(args.value, 0, 6, 1);
  check(args.mask_strides, 0, 5, 1);
  check(args.output, 6, 18, 1);
  check(all.query_gradient, 56, 8, 1);
  check(all.key_gradient, 40, 8, 1);
  check(all.value_gradient, 30, 1, 5);
}

/// A type in MLIR has the size and the kind of the parameter in C.
TEST_F(RuntimeABI, Functions) {
  context.loadDialect<LLVM::LLVMDialect>();
  Builder b(&context);
  Type ptr = LLVM::LLVMPointerType::get(&context), i64 = b.getI64Type();
  auto entry = getRuntimeType(b, tpx_main_fn());
  EXPECT_EQ(entry.getReturnType(), b.getI32Type());
  EXPECT_EQ(entry.getParams(), ArrayRef<Type>({ptr, i64, ptr, ptr, ptr, ptr}));
  auto range = getRuntimeType(b, tprt_range_function());
  EXPECT_EQ(range.getReturnType(), LLVM::LLVMVoidType::get(&context));
  EXPECT_EQ(range.getParams(), ArrayRef<Type>({ptr, i64, i64}));
}

} // namespace
