//===- CudaGemmTest.cpp - tprt_gemm on a device against that on the host --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GemmCase.h"

#include <thread>

using namespace tprt;
using namespace tprt::test;

TEST_P(CudaGemmTest, AsOnTheHost) {
  // dtype, accumulate, batch0, batch1, m, n, k; row, column, batch strides of
  // A, B and C.
  run({"plain", {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0}});
  run({"A transposed", {0, 0, 1, 1, 5, 7, 3, 1, 5, 0, 0, 7, 1, 0, 0, 7, 0, 0}});
  run({"B transposed", {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 1, 3, 0, 0, 7, 0, 0}});
  run({"both, padded", {0, 0, 1, 1, 5, 7, 3, 1, 6, 0, 0, 1, 4, 0, 0, 9, 0, 0}});
  run({"bias", {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0}, true});
  run({"accumulates", {0, 1, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0}});
  run({"accumulates and bias",
       {0, 1, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0},
       true});
  run({"one row", {0, 0, 1, 1, 1, 7, 3, 99, 1, 0, 0, 7, 1, 0, 0, 99, 0, 0}});
  run({"one column of A",
       {0, 0, 1, 1, 5, 7, 1, 1, 99, 0, 0, 99, 1, 0, 0, 7, 0, 0}});
  run({"one column of B",
       {0, 0, 1, 1, 5, 1, 3, 3, 1, 0, 0, 1, 99, 0, 0, 1, 0, 0}});
}

// And then: activation; row and batch strides of the addend.
TEST_P(CudaGemmTest, Epilogues) {
  for (int64_t activation :
       {TPRT_NO_ACTIVATION, TPRT_RELU, TPRT_GELU, TPRT_GELU_TANH, TPRT_SILU})
    for (int bits = 0; bits < 8; ++bits) {
      bool hasBias = bits & 1, hasAddend = bits & 2;
      SCOPED_TRACE(testing::Message() << activation << " bits " << bits);
      GemmCase c{"epilogue",
                 {0, 0, 2, 3, 2, 3,  5, 5,          1, 30, 10,
                  3, 1, 0, 0, 3, 18, 6, activation, 4, 24, 8},
                 hasBias,
                 hasAddend};
      c.args.accumulate = (bits & 4) && !hasAddend;
      run(c);
      c.args.addend_b0 = 40; // no longer one batch
      run(c);
    }
  run({"one row",
       {0, 0, 1, 1, 1, 7, 3, 99, 1, 0, 0, 7, 1, 0, 0, 99, 0, 0, 0, 99, 0, 0},
       false,
       true});
  // cuBLASLt doesn't have this.
  size_t kernels = fake::countCalls("cuLaunchKernel tprt_epilogue");
  run({"one row for all",
       {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0},
       false,
       true});
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_epilogue"), kernels + 1);
}

/// The fake cuBLASLt has none for a single row. Sums are rounded before and
/// after such an epilogue.
TEST_P(CudaGemmTest, EpiloguesByAKernel) {
  constexpr double tolerance = 2;
  size_t numKernels = 0;
  for (int64_t activation :
       {TPRT_NO_ACTIVATION, TPRT_RELU, TPRT_GELU, TPRT_GELU_TANH, TPRT_SILU})
    for (int bits = 0; bits < 8; ++bits) {
      SCOPED_TRACE(testing::Message() << activation << " bits " << bits);
      bool hasBias = bits & 1, hasAddend = bits & 2;
      GemmCase c{"one row",
                 {0, 0, 1, 1, 1, 7, 3, 3,          1, 0, 0,
                  7, 1, 0, 0, 7, 0, 0, activation, 7, 0, 0},
                 hasBias,
                 hasAddend};
      c.args.accumulate = (bits & 4) && !hasAddend;
      run(c, tolerance);
      numKernels += hasBias || activation; // cuBLASLt adds matrices
      EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_epilogue"), numKernels);
    }
  if (GetParam() == Dtype::F64) // for which it has no epilogues at all
    return;
  // The library may also refuse later.
  numKernels = fake::countCalls("cuLaunchKernel tprt_epilogue");
  fake::failCall("cublasLtMatmul", 15);
  run({"bias", {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0}, true},
      tolerance);
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_epilogue"), numKernels + 1);
}

/// cuBLASLt has no factors, so a kernel follows.
TEST_P(CudaGemmTest, Factors) {
  for (int bits = 0; bits < 8; ++bits) {
    SCOPED_TRACE(bits);
    GemmCase c{"factor",
               {0, 0, 2, 3,  2, 3,         5, 5,  1, 30, 10, 3, 1,
                0, 0, 3, 18, 6, TPRT_SILU, 4, 24, 8, 4,  32, 8},
               (bits & 1) != 0,
               (bits & 2) != 0,
               /*hasFactor=*/true};
    c.args.accumulate = (bits & 4) && !c.hasAddend;
    run(c, /*tolerance=*/2);
    c.args.factor_b0 = 40; // no longer one batch
    run(c, /*tolerance=*/2);
  }
  run({"one row for all",
       {0, 0, 1, 1, 15, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0},
       false,
       false,
       true});
  run({"of nothing",
       {0, 0, 2, 1,  3, 5, 0, 0,  1, 0, 0,  5, 1,
        0, 0, 7, 21, 0, 0, 5, 15, 0, 5, 15, 0},
       true,
       false,
       true});
}

TEST_P(CudaGemmTest, Batches) {
  run({"inner", {0, 0, 1, 4, 2, 3, 5, 5, 1, 0, 10, 3, 1, 0, 15, 3, 0, 6}});
  run({"outer", {0, 0, 4, 1, 2, 3, 5, 5, 1, 10, 0, 3, 1, 15, 0, 3, 6, 0}});
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 2u);
  run({"both as one",
       {0, 0, 2, 3, 2, 3, 5, 5, 1, 30, 10, 3, 1, 45, 15, 3, 18, 6}});
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 3u);
  run({"B shared", {0, 0, 2, 3, 2, 3, 5, 5, 1, 30, 10, 3, 1, 0, 0, 3, 18, 6}});
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 4u);
  // Heads within rows.
  run({"apart", {0, 0, 2, 3, 2, 3, 5, 15, 1, 30, 5, 3, 1, 45, 15, 9, 18, 3}});
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 6u);
}

TEST_P(CudaGemmTest, OverNothing) {
  run({"k = 0", {0, 0, 2, 1, 3, 5, 0, 0, 1, 0, 0, 5, 1, 0, 0, 7, 21, 0}});
  run({"with a bias",
       {0, 0, 2, 1, 3, 5, 0, 0, 1, 0, 0, 5, 1, 0, 0, 7, 21, 0},
       true});
  run({"accumulates", {0, 1, 1, 1, 3, 5, 0, 0, 1, 0, 0, 5, 1, 0, 0, 7, 0, 0}});
  run({"adds",
       {0, 0, 2, 1, 3, 5, 0, 0, 1, 0, 0, 5, 1, 0, 0, 7, 21, 0, 0, 5, 15, 0},
       false,
       true});
  run({"activated",
       {0, 0, 2, 1, 3, 5,  0, 0,         1, 0,  0,
        5, 1, 0, 0, 7, 21, 0, TPRT_SILU, 5, 15, 0},
       true,
       true});
  run({"no rows", {0, 0, 1, 1, 0, 5, 3, 3, 1, 0, 0, 5, 1, 0, 0, 5, 0, 0}});
  EXPECT_EQ(fake::countCalls("cublasLtMatmul"), 0u);
}

TEST_P(CudaGemmTest, AsksOncePerShape) {
  GemmCase c{"plain", {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0}};
  for (int repeat = 0; repeat < 3; ++repeat)
    run(c);
  EXPECT_EQ(fake::countCalls("cublasLtMatmulAlgoGetHeuristic"), 1u);
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 3u);
  EXPECT_EQ(fake::countCalls("cuMemAlloc 33554432"), 1u); // the workspace
  c.hasBias = true; // or, of f64, C accumulates
  run(c);
  EXPECT_EQ(fake::countCalls("cublasLtMatmulAlgoGetHeuristic"), 2u);
}

/// The fake cuBLASLt refuses an operand that is less aligned than it was told.
TEST_P(CudaGemmTest, AsksAgainForOtherAlignments) {
  tprt_gemm_args args = {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0};
  args.dtype = static_cast<int32_t>(GetParam());
  auto data = device->allocate(3 * 512);
  std::byte *a = data.get(), *b = a + 512, *c = b + 512;
  stream.beginRun();
  for (int64_t offset : {0, 1, 0, 1})
    stream.gemm(args, {a + offset * byteWidth(GetParam()), b, c});
  stream.finish([](auto) {});
  EXPECT_EQ(fake::countCalls("cublasLtMatmulAlgoGetHeuristic"), 2u);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaGemmTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         getTypeName);

/// Nothing waits for a device that has been given up, so cuBLASLt isn't ended.
TEST(CudaGemm, EndsUnlessTheDeviceHangs) {
  for (bool hangs : {false, true}) {
    fake::reset();
    tprt_device_code code = {};
    std::shared_ptr<Device> device = cuda::makeDevice({&code}, {});
    auto data = device->allocate(1024);
    DeviceStream &stream = *device->getStream(0);
    tprt_gemm_args args = {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0,
                           7, 1, 0, 0, 7, 0, 0, 0, 0, 0};
    GemmOperands operands{data.get(), data.get(), data.get()};
    stream.gemm(args, operands);
    if (hangs)
      fake::hangKernels();
    args.k = 0; // a kernel of the runtime
    stream.gemm(args, operands);
    auto giveUp = [](auto) { throw executionError("too long"); };
    if (hangs)
      EXPECT_EQ(errorOf([&] { stream.finish(giveUp); }), "too long");
    else
      stream.finish([](auto) {});
    data.reset();
    std::thread([&] { device.reset(); }).join();
    EXPECT_EQ(fake::countCalls("cublasLtDestroy"), hangs ? 0u : 1u);
  }
  fake::reset();
}

TEST(CudaGemm, NamesWhatFails) {
  fake::reset();
  tprt_device_code code = {};
  std::shared_ptr<Device> device = cuda::makeDevice({&code}, {});
  DeviceStream &stream = *device->getStream(0);
  auto data = device->allocate(1024);
  tprt_gemm_args args = {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0};
  GemmOperands operands{data.get(), data.get(), data.get()};
  auto run = [&] { stream.gemm(args, operands); };
  fake::failCall("cublasLtMatmulAlgoGetHeuristic", 15);
  EXPECT_EQ(errorOf(run),
            "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED");
  // What has failed leaves nothing behind.
  EXPECT_TRUE(stream.getGemmUses().products.empty());
  stream.beginRun();
  // Only a product that cuBLASLt doesn't support is computed in another way.
  operands.bias = data.get();
  fake::failCall("cublasLtMatmulAlgoGetHeuristic", 13);
  EXPECT_EQ(errorOf(run),
            "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_EXECUTION_FAILED");
  fake::failCall("cublasLtMatmul", 15);
  fake::failCall("cublasLtMatmulAlgoGetHeuristic", 13, /*skip=*/1);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(errorOf(run),
              "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_EXECUTION_FAILED");
    fake::failCall("cublasLtMatmul", 15);
    fake::failCall("cublasLtMatmulAlgoGetHeuristic", 13);
  }
  fake::reset();
  operands.bias = nullptr;
  fake::failCall("cublasLtMatmul", 13);
  EXPECT_EQ(errorOf(run), "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED");
  args.activation = 5;
  EXPECT_EQ(errorOf(run), "tprt_gemm: activation is 5, expected 0 to 4");
  args.activation = TPRT_NO_ACTIVATION;
  operands.addend = data.get();
  args.accumulate = 1;
  EXPECT_EQ(errorOf(run),
            "tprt_gemm: a product that accumulates can't have an addend");
  args.dtype = TPRT_I32;
  EXPECT_EQ(errorOf(run), "tprt_gemm: dtype is not f32, f64, f16 or bf16");
  fake::reset();
}

TEST(CudaGemm, DestroysWhatItHasMade) {
  fake::reset();
  tprt_device_code code = {};
  std::shared_ptr<Device> device = cuda::makeDevice({&code}, {});
  DeviceStream &stream = *device->getStream(0);
  auto data = device->allocate(1024);
  tprt_gemm_args args = {0, 0, 1, 2, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 35};
  GemmOperands operands{data.get(), data.get(), data.get() + 512};
  stream.gemm(args, operands);
  size_t before = fake::getNumObjects();
  for (auto [function, numCalls] :
       {std::pair("cublasLtMatmulDescCreate", 1),
        {"cublasLtMatmulDescSetAttribute", 2},
        {"cublasLtMatrixLayoutCreate", 4},
        {"cublasLtMatrixLayoutSetAttribute", 8},
        {"cublasLtMatmulPreferenceCreate", 1},
        {"cublasLtMatmulPreferenceSetAttribute", 5}})
    for (int skip = 0; skip < numCalls; ++skip) {
      fake::failCall(function, 13, skip);
      ++args.c_row; // another product
      EXPECT_EQ(errorOf([&] { stream.gemm(args, operands); }),
                std::string(function) + ": CUBLAS_STATUS_EXECUTION_FAILED");
      EXPECT_EQ(fake::getNumObjects(), before) << function << " " << skip;
    }
  stream.finish([](auto) {});
  fake::reset();
}
