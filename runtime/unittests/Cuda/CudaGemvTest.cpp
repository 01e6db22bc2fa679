//===- CudaGemvTest.cpp - Products of few rows on a device ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GemmCase.h"

#include <functional>

using namespace tprt;
using namespace tprt::test;

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
    GemmOperands onHost = call(&TestedOperand::host);
    ASSERT_EQ(tprt_gemm(&host.rank, &args, onHost.a, onHost.b, onHost.c,
                        nullptr, onHost.addend, onHost.factor),
              TPRT_OK);
    stream.gemm(args, call(&TestedOperand::data));
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
    for (const TestedOperand &buffer : buffers)
      buffer.expectSame(*device, /*tolerance=*/0);
    return fake::countCalls("cuLaunchKernel tprt_gemv") - before;
  }

  void join();
  void runInAnyOrder();

  std::vector<TestedOperand> buffers, weights;
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
    for (const TestedOperand &buffer : buffers)
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
  TestedOperand a(*eight, GetParam(), m * k, 1, /*scale=*/0.3f);
  std::vector<TestedOperand> b, joined, apart;
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
      {"markTime", [&] { stream.markTime(stream); }},
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

static const auto narrowTypes =
    testing::Values(Dtype::F32, Dtype::F16, Dtype::BF16);
INSTANTIATE_TEST_SUITE_P(Dtypes, FewRowsTest, narrowTypes, getTypeName);
INSTANTIATE_TEST_SUITE_P(Dtypes, FewRowsOnOneProcessorTest, narrowTypes,
                         getTypeName);
INSTANTIATE_TEST_SUITE_P(Dtypes, RowProductsTest, narrowTypes, getTypeName);
INSTANTIATE_TEST_SUITE_P(Dtypes, RowProductsOnOneProcessorTest, narrowTypes,
                         getTypeName);
