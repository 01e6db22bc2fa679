//===- CudaGemmTest.cpp - tprt_gemm on a device against that on the host --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/CudaDevice.h"

#include "Fake.h"
#include "LoneRank.h"
#include "TestUtils.h"

#include <functional>
#include <random>
#include <thread>

using namespace tprt;
using namespace tprt::test;

namespace {

struct Case {
  const char *name;
  tprt_gemm_args args;
  bool hasBias = false, hasAddend = false, hasFactor = false;
};

/// Numbers of one dtype, on the host and on the device.
class Operand {
public:
  Operand(Device &device, Dtype dtype, int64_t count, uint32_t seed,
          float scale = 1)
      : dtype(dtype), count(count), host(allocateAligned(count * 8)),
        data(device.allocate(count * byteWidth(dtype))) {
    std::mt19937 generator(seed);
    std::vector<float> values(count);
    // Integers are exact in every type, as are their products.
    for (float &value : values)
      value =
          scale * static_cast<float>(static_cast<int>(generator() % 17) - 8);
    if (dtype == Dtype::F32)
      std::memcpy(host.get(), values.data(), count * 4);
    else if (dtype == Dtype::F64)
      std::copy(values.begin(), values.end(),
                reinterpret_cast<double *>(host.get()));
    else
      convertFromF32(dtype, values.data(), host.get(), count);
    device.write({dtype, {count}, host}, makeBox({0}, {count}), dtype,
                 data.get());
  }

  /// On the device as on the host, but for `tolerance` units of the type's
  /// precision.
  void expectSame(Device &device, double tolerance) const {
    auto read = allocateAligned(count * 8);
    device.read(data.get(), dtype, {count}, makeBox({0}, {count}), read.get());
    double unit = dtype == Dtype::F32   ? 0x1p-23
                  : dtype == Dtype::F16 ? 0x1p-10
                                        : 0x1p-7;
    for (int64_t i = 0; i < count; ++i) {
      double expected = loadAsDouble(dtype, host.get(), i);
      double found = loadAsDouble(dtype, read.get(), i);
      if (!std::isfinite(expected)) { // sums of sums in f16
        ASSERT_FALSE(std::isfinite(found)) << i;
        continue;
      }
      ASSERT_NEAR(found, expected,
                  tolerance * unit * std::max(1.0, std::abs(expected)))
          << i;
    }
  }

  Dtype dtype;
  int64_t count;
  std::shared_ptr<std::byte> host, data;
};

class CudaGemmTest : public testing::TestWithParam<Dtype> {
protected:
  explicit CudaGemmTest(int32_t processors = 132)
      : device(makeDevice(code, processors)), stream(*device->getStream(0)) {}

  void SetUp() override { fake::reset(); }

  static std::shared_ptr<Device> makeDevice(const tprt_device_code &code,
                                            int32_t processors) {
    fake::reset();
    fake::getSettings().processors = processors;
    return cuda::makeDevice({&code}, {});
  }

  tprt_device_code code = {};
  std::shared_ptr<Device> device;
  DeviceStream &stream;
  LoneRank host;

  void run(Case c, double tolerance = 0, int64_t count = 512) {
    SCOPED_TRACE(c.name);
    Dtype dtype = GetParam();
    c.args.dtype = static_cast<int32_t>(dtype);
    Operand a(*device, dtype, count, 1), b(*device, dtype, count, 2),
        result(*device, dtype, count, 3), bias(*device, dtype, count, 4),
        addend(*device, dtype, count, 5), factor(*device, dtype, count, 6);
    ASSERT_EQ(tprt_gemm(&host.rank, &c.args, a.host.get(), b.host.get(),
                        result.host.get(),
                        c.hasBias ? bias.host.get() : nullptr,
                        c.hasAddend ? addend.host.get() : nullptr,
                        c.hasFactor ? factor.host.get() : nullptr),
              TPRT_OK)
        << host.rank.error;
    stream.beginRun();
    stream.gemm(c.args, {a.data.get(), b.data.get(), result.data.get(),
                         c.hasBias ? bias.data.get() : nullptr,
                         c.hasAddend ? addend.data.get() : nullptr,
                         c.hasFactor ? factor.data.get() : nullptr});
    stream.endRun();
    stream.finish([](auto) {});
    // Two computations of an activation may round differently.
    if (c.args.activation > TPRT_RELU)
      tolerance = c.hasFactor ? 16 : 2; // factors are at most 8
    result.expectSame(*device, tolerance);
  }
};

} // namespace

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
      Case c{"epilogue",
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
      Case c{"one row",
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
    Case c{"factor",
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

namespace {

/// Products of few rows are computed by groups of several columns where these
/// are enough blocks for the processors, or else by single columns.
class FewRowsTest : public CudaGemmTest {
protected:
  using CudaGemmTest::CudaGemmTest;
  void multiply();
};
class FewRowsOnOneProcessorTest : public FewRowsTest {
protected:
  FewRowsOnOneProcessorTest() : FewRowsTest(/*processors=*/1) {}
};

} // namespace

/// Up to 8 rows are an own kernel's, with every epilogue.
void FewRowsTest::multiply() {
  std::mt19937 generator(1);
  auto draw = [&](std::initializer_list<int64_t> values) {
    return values.begin()[generator() % values.size()];
  };
  for (int repeat = 0; repeat < 40; ++repeat) {
    int64_t m = draw({1, 1, 2, 3, 4, 7, 8}), n = draw({1, 5, 64, 130});
    int64_t k = draw({8, 72, 512, 776, 1544}), pitch = k + draw({0, 8});
    int64_t activation =
        draw({TPRT_NO_ACTIVATION, TPRT_NO_ACTIVATION, TPRT_RELU, TPRT_GELU,
              TPRT_GELU_TANH, TPRT_SILU});
    int64_t accumulate = generator() % 4 == 0;
    bool hasAddend = !accumulate && generator() % 2;
    run({"few rows",
         {0,    accumulate != 0, 1, 1, m,     n, k, pitch,      1,     0, 0,
          1,    pitch,           0, 0, n + 3, 0, 0, activation, n + 1, 0, 0,
          n + 2},
         generator() % 2 == 0,
         hasAddend,
         generator() % 3 == 0},
        /*tolerance=*/0, /*count=*/130 * 1552);
  }
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_gemv"), 40u);
  EXPECT_EQ(fake::countCalls("cublasLtMatmul "), 0u);
}

TEST_P(FewRowsTest, Multiply) { multiply(); }
TEST_P(FewRowsOnOneProcessorTest, Multiply) { multiply(); }

namespace {

/// Products of few rows, as a program's ops.
class RowProductsTest : public FewRowsTest {
protected:
  static constexpr int64_t depth = 8, width = 64, pitch = 72, rows = 8;
  static constexpr int64_t bufferElements = rows * pitch;

  /// C = (A * B + addend) * factor. Numbers are those of buffers, and of B's
  /// weight, which has `n` columns.
  struct Op {
    int a, b, c;
    int factor = -1, addend = -1;
    int64_t n = width;
  };

  explicit RowProductsTest(int32_t processors = 132) : FewRowsTest(processors) {
    for (uint32_t i = 0; i < 3; ++i)
      weights.emplace_back(*device, GetParam(), width * depth, i);
  }

  void draw(uint32_t seed) {
    buffers.clear();
    for (uint32_t i = 0; i < 8; ++i)
      buffers.emplace_back(*device, GetParam(), bufferElements, seed + i);
  }

  void enqueue(const Op &op, int64_t m) {
    tprt_gemm_args args = {};
    args.dtype = static_cast<int32_t>(GetParam());
    args.batch0 = args.batch1 = args.a_col = args.b_row = 1;
    args.m = m;
    args.n = op.n;
    args.k = args.b_col = depth;
    args.a_row = args.c_row = args.factor_row = args.addend_row = pitch;
    auto get = [&](int number, auto member) -> std::byte * {
      return number < 0 ? nullptr : (buffers[number].*member).get();
    };
    auto call = [&](auto member) {
      return GemmOperands{get(op.a, member),      (weights[op.b].*member).get(),
                          get(op.c, member),      nullptr,
                          get(op.addend, member), get(op.factor, member)};
    };
    GemmOperands onHost = call(&Operand::host);
    ASSERT_EQ(tprt_gemm(&host.rank, &args, onHost.a, onHost.b, onHost.c,
                        nullptr, onHost.addend, onHost.factor),
              TPRT_OK);
    stream.gemm(args, call(&Operand::data));
  }

  /// The launches that these ops take; checks their results.
  size_t countLaunches(const std::vector<Op> &ops, int64_t m = 1) {
    size_t before = fake::countCalls("cuLaunchKernel tprt_gemv");
    draw(/*seed=*/0);
    stream.beginRun();
    for (const Op &op : ops)
      enqueue(op, m);
    stream.endRun();
    stream.finish([](auto) {});
    for (const Operand &buffer : buffers)
      buffer.expectSame(*device, /*tolerance=*/0);
    return fake::countCalls("cuLaunchKernel tprt_gemv") - before;
  }

  void join();
  void runInAnyOrder();

  std::vector<Operand> buffers, weights;
};
class RowProductsOnOneProcessorTest : public RowProductsTest {
protected:
  RowProductsOnOneProcessorTest() : RowProductsTest(/*processors=*/1) {}
};

} // namespace

/// What shares A is one launch, unless it depends on each other.
void RowProductsTest::join() {
  for (int64_t m : {1, 2, 3, 8}) {
    SCOPED_TRACE(m);
    EXPECT_EQ(countLaunches({{0, 0, 1}, {0, 1, 2, -1, -1, 17}, {0, 2, 3}}, m),
              1u);
    EXPECT_EQ(countLaunches(
                  {{0, 0, 1}, {0, 1, 2}, {0, 2, 3}, {0, 0, 4}, {0, 1, 5}}, m),
              2u); // three at most
    EXPECT_EQ(countLaunches({{0, 0, 1}, {4, 1, 2}}, m), 2u);
    // Gated.
    EXPECT_EQ(countLaunches({{0, 0, 1}, {0, 1, 2, 1}}, m), 1u);
    EXPECT_EQ(countLaunches({{0, 0, 1}, {0, 1, 2, 1}, {0, 2, 3}}, m), 2u);
    EXPECT_EQ(countLaunches({{0, 0, 1}, {0, 2, 3}, {0, 1, 2, 1}}, m), 2u);
    EXPECT_EQ(countLaunches({{0, 0, 1}, {0, 1, 2, 1, -1, 17}}, m), 2u);
    EXPECT_EQ(countLaunches({{0, 0, 1}, {0, 1, 2, 1, 1}}, m), 2u);
    EXPECT_EQ(countLaunches({{0, 0, 1}, {0, 1, 2, 4, 1}}, m), 2u);
    // Both write, and one writes what the other reads.
    EXPECT_EQ(countLaunches({{0, 0, 1}, {0, 1, 1}}, m), 2u);
    EXPECT_EQ(countLaunches({{0, 0, 1, -1, 2}, {0, 1, 2}}, m), 2u);
    EXPECT_EQ(countLaunches({{0, 0, 1}, {1, 1, 2}}, m), 2u);
  }
}

/// Any order of products and copies gives the host's results.
void RowProductsTest::runInAnyOrder() {
  std::mt19937 generator(2);
  auto below = [&](int count) { return static_cast<int>(generator() % count); };
  for (int repeat = 0; repeat < 60; ++repeat) {
    SCOPED_TRACE(repeat);
    draw(repeat * 8);
    int64_t m = 1 + below(rows);
    stream.beginRun();
    int a = below(2);
    for (int i = 0; i < 5; ++i) {
      if (below(4) == 0)
        a = below(2);
      // A and C are never one buffer; sums of sums would no longer be exact.
      Op op{a, below(3), 2 + below(6)};
      op.n = below(3) == 0 ? 17 : width;
      auto pickOther = [&] {
        int other = below(8);
        return below(2) == 0 && other != op.c ? other : -1;
      };
      op.addend = pickOther();
      op.factor = pickOther();
      enqueue(op, m);
      if (below(6) == 0) {
        int from = below(8), to = below(8);
        if (from == to)
          continue;
        int64_t bytes = bufferElements * byteWidth(GetParam());
        stream.copy(buffers[to].data.get(), buffers[from].data.get(), bytes);
        std::memcpy(buffers[to].host.get(), buffers[from].host.get(), bytes);
      }
    }
    stream.endRun();
    stream.finish([](auto) {});
    for (const Operand &buffer : buffers)
      buffer.expectSame(*device, /*tolerance=*/1);
  }
}

TEST_P(RowProductsTest, Join) { join(); }
TEST_P(RowProductsTest, InAnyOrder) { runInAnyOrder(); }
TEST_P(RowProductsOnOneProcessorTest, Join) { join(); }
TEST_P(RowProductsOnOneProcessorTest, InAnyOrder) { runInAnyOrder(); }

/// Also where they are computed by groups of several columns only if joined.
TEST_P(RowProductsTest, JoinedOnesHaveTheSameBits) {
  constexpr int64_t k = 512, n = 64, m = 8;
  constexpr int count = 3;
  auto eight = makeDevice(code, /*processors=*/8);
  DeviceStream &its = *eight->getStream(0);
  Operand a(*eight, GetParam(), m * k, 1, /*scale=*/0.3f);
  std::vector<Operand> b, joined, apart;
  for (uint32_t i = 0; i < count; ++i) {
    b.emplace_back(*eight, GetParam(), n * k, 2 + i, /*scale=*/0.7f);
    joined.emplace_back(*eight, GetParam(), m * n, 0);
    apart.emplace_back(*eight, GetParam(), m * n, 0);
  }
  for (int64_t rows = 1; rows <= m; ++rows) {
    tprt_gemm_args args = {};
    args.dtype = static_cast<int32_t>(GetParam());
    args.batch0 = args.batch1 = args.a_col = args.b_row = 1;
    args.m = rows;
    args.n = args.c_row = n;
    args.k = args.a_row = args.b_col = k;
    its.beginRun();
    for (int i = 0; i < count; ++i)
      its.gemm(args, {a.data.get(), b[i].data.get(), joined[i].data.get()});
    for (int i = 0; i < count; ++i) {
      its.announce();
      its.gemm(args, {a.data.get(), b[i].data.get(), apart[i].data.get()});
    }
    its.endRun();
    its.finish([](auto) {});
    for (int i = 0; i < count; ++i) {
      std::vector<std::byte> bits[2];
      for (auto [operand, of] :
           {std::pair(&joined[i], &bits[0]), std::pair(&apart[i], &bits[1])}) {
        of->resize(rows * n * byteWidth(GetParam()));
        eight->read(operand->data.get(), GetParam(), {rows * n},
                    makeBox({0}, {rows * n}), of->data());
      }
      EXPECT_EQ(bits[0], bits[1]) << rows << " rows, product " << i;
    }
  }
}

/// What is enqueued after a product that is held comes after it.
TEST_P(RowProductsTest, ComeBeforeWhatFollows) {
  draw(/*seed=*/0);
  std::byte *data = buffers[0].data.get(), *other = buffers[7].data.get();
  DeviceStream &second = *device->getStream(1);
  second.beginRun();
  Event *event = second.announce();
  tprt_attention_args attention = {};
  attention.dtype = static_cast<int32_t>(GetParam());
  attention.scale = 1;
  attention.rows = attention.columns = 1;
  attention.depth = attention.width = 8;
  std::fill(std::begin(attention.batch), std::end(attention.batch), 1);
  for (auto *strides :
       {&attention.query, &attention.key, &attention.value, &attention.output})
    strides->row = 8, strides->col = 1;
  std::pair<const char *, std::function<void()>> actions[] = {
      {"fill", [&] { stream.fill(data, 0, 4, 8); }},
      {"copy", [&] { stream.copy(other, data, 16); }},
      {"reduce",
       [&] {
         stream.reduce(Reduction::Sum, GetParam(), {data, data}, {other}, 8);
       }},
      {"announce", [&] { stream.announce(); }},
      {"waitFor", [&] { stream.waitFor(event); }},
      {"attention",
       [&] { stream.attention(attention, data, data, data, nullptr, other); }},
      {"markTime", [&] { stream.markTime(); }},
      {"endRun", [&] { stream.endRun(); }},
      {"finish", [&] { stream.finish([](auto) {}); }}};
  stream.beginTiming();
  for (auto &[name, act] : actions) {
    SCOPED_TRACE(name);
    stream.beginRun();
    size_t before = fake::getCalls().size();
    enqueue({1, 0, 2}, 1);
    std::vector<std::string> calls = fake::getCalls();
    EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_gemv"), 0u);
    act();
    calls = fake::getCalls();
    ASSERT_GT(calls.size(), before);
    auto enqueues = [](const std::string &call) {
      for (const char *name :
           {"cuLaunchKernel", "cuMemcpy", "cuMemset", "cuEventRecord",
            "cuStreamWaitEvent", "cuStreamQuery", "cudnnBackendExecute"})
        if (call.starts_with(name))
          return true;
      return false;
    };
    auto first = std::find_if(calls.begin() + before, calls.end(), enqueues);
    ASSERT_NE(first, calls.end());
    EXPECT_TRUE(first->starts_with("cuLaunchKernel tprt_gemv")) << *first;
    stream.endRun();
    stream.finish([](auto) {});
    fake::reset();
  }
}

/// The report has them as cuBLASLt's.
TEST(CudaGemm, ListsProductsOfFewRows) {
  fake::reset();
  tprt_device_code code = {};
  std::shared_ptr<Device> device = cuda::makeDevice({&code}, {});
  DeviceStream &stream = *device->getStream(0);
  auto memory = device->allocate(4096);
  tprt_gemm_args args = {TPRT_F32, 0, 1, 1, 2,  16, 8, 8,         1, 0, 0,
                         1,        8, 0, 0, 16, 0,  0, TPRT_SILU, 0, 0, 0};
  GemmOperands operands{memory.get(), memory.get() + 1024, memory.get() + 2048};
  for (int run = 0; run < 2; ++run) {
    stream.beginRun();
    stream.gemm(args, operands);
    stream.gemm(args, operands);
    stream.endRun();
    stream.finish([](auto) {});
    EXPECT_EQ(stream.getGemmUses().products,
              (std::vector<GemmUse>{
                  {.form = "f32, 2 x 16 x 8 (m x n x k), A by rows of 8, B by "
                           "columns of 8, C by rows of 16, silu, aligned to "
                           "256 256 256",
                   .library = "own",
                   .epilogue = "fused",
                   .calls = 2}}));
  }
}

/// Enough blocks for all multiprocessors, and several columns for each.
TEST(CudaGemm, BlocksOfFewRows) {
  tprt_device_code code = {};
  auto getKernel = [&](int64_t m, int64_t n, int64_t k) {
    fake::reset();
    fake::getSettings().processors = 4;
    std::shared_ptr<Device> device = cuda::makeDevice({&code}, {});
    DeviceStream &stream = *device->getStream(0);
    auto memory = device->allocate(1 << 20);
    tprt_gemm_args args = {TPRT_BF16, 0, 1, 1, m, n, k, k, 1,
                           0,         0, 1, k, 0, 0, n, 0, 0};
    stream.beginRun();
    stream.gemm(args, {memory.get(), memory.get(), memory.get() + (1 << 19)});
    stream.endRun();
    stream.finish([](auto) {});
    for (const std::string &call : fake::getCalls())
      if (call.starts_with("cuLaunchKernel tprt_gemv_bf16_"))
        return call.substr(30, call.find(" block") - 30);
    return std::string();
  };
  EXPECT_EQ(getKernel(1, 128, 512), "1_2 grid 16");
  EXPECT_EQ(getKernel(1, 32, 4096),
            "1_2 grid 16"); // four warps share a column
  EXPECT_EQ(getKernel(3, 128, 1024), "4_4 grid 16");
  EXPECT_EQ(getKernel(5, 64, 2048), "8_2 grid 32");
  EXPECT_EQ(getKernel(9, 64, 512), "");
  EXPECT_EQ(getKernel(1, 64, 500), "");
  fake::reset();
}

TEST_P(CudaGemmTest, AsksOncePerShape) {
  Case c{"plain", {0, 0, 1, 1, 5, 7, 3, 3, 1, 0, 0, 7, 1, 0, 0, 7, 0, 0}};
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

static const auto narrowTypes =
    testing::Values(Dtype::F32, Dtype::F16, Dtype::BF16);
static std::string getName(const testing::TestParamInfo<Dtype> &info) {
  return std::string(toString(info.param));
}
INSTANTIATE_TEST_SUITE_P(Dtypes, FewRowsTest, narrowTypes, getName);
INSTANTIATE_TEST_SUITE_P(Dtypes, FewRowsOnOneProcessorTest, narrowTypes,
                         getName);
INSTANTIATE_TEST_SUITE_P(Dtypes, RowProductsTest, narrowTypes, getName);
INSTANTIATE_TEST_SUITE_P(Dtypes, RowProductsOnOneProcessorTest, narrowTypes,
                         getName);
INSTANTIATE_TEST_SUITE_P(Dtypes, CudaGemmTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         getName);

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
