//===- GemmTest.cpp - tprt_gemm against the definition -------------------===//

#include "LoneRank.h"
#include "TestUtils.h"

#include <cmath>
#include <random>

using namespace tprt;
using namespace tprt::test;

namespace {

/// A buffer of any dtype, handled as doubles.
class Elements {
public:
  Elements(Dtype dtype, int64_t count)
      : dtype(dtype), count(count),
        bytes(std::max<int64_t>(count, 1) * byteWidth(dtype)) {}

  double get(int64_t i) const {
    EXPECT_LT(i, count);
    return loadAsDouble(dtype, bytes.data(), i);
  }
  void set(int64_t i, double value) {
    float single = static_cast<float>(value);
    if (dtype == Dtype::F64)
      std::memcpy(&bytes[i * 8], &value, 8);
    else if (dtype == Dtype::F32)
      std::memcpy(&bytes[i * 4], &single, 4);
    else
      convertFromF32(dtype, &single, &bytes[i * 2], 1);
  }
  void randomize(std::mt19937 &generator) {
    std::uniform_real_distribution<double> distribution(-1, 1);
    for (int64_t i = 0; i < count; ++i)
      set(i, distribution(generator));
  }
  std::byte *data() { return bytes.data(); }
  int64_t size() const { return count; }

private:
  Dtype dtype;
  int64_t count;
  std::vector<std::byte> bytes;
};

struct Case {
  Dtype dtype;
  int64_t batch0, batch1, m, n, k;
  bool transposeA = false, transposeB = false;
  bool accumulate = false, hasBias = false;
  bool sharesB = false; ///< B's batch strides are 0
  int64_t padding = 0;  ///< added to every leading dimension
};

} // namespace

static tprt_gemm_args makeArgs(const Case &c) {
  tprt_gemm_args args = {};
  args.dtype = static_cast<int32_t>(c.dtype);
  args.accumulate = c.accumulate;
  args.batch0 = c.batch0;
  args.batch1 = c.batch1;
  args.m = c.m;
  args.n = c.n;
  args.k = c.k;
  int64_t leadingA = (c.transposeA ? c.m : c.k) + c.padding;
  args.a_row = c.transposeA ? 1 : leadingA;
  args.a_col = c.transposeA ? leadingA : 1;
  args.a_b1 = leadingA * (c.transposeA ? c.k : c.m);
  args.a_b0 = args.a_b1 * c.batch1;
  int64_t leadingB = (c.transposeB ? c.k : c.n) + c.padding;
  args.b_row = c.transposeB ? 1 : leadingB;
  args.b_col = c.transposeB ? leadingB : 1;
  args.b_b1 = c.sharesB ? 0 : leadingB * (c.transposeB ? c.n : c.k);
  args.b_b0 = args.b_b1 * c.batch1;
  args.c_row = c.n + c.padding;
  args.c_b1 = args.c_row * c.m;
  args.c_b0 = args.c_b1 * c.batch1;
  return args;
}

/// Runs one case against the definition, in double; checks that padding is left
/// alone.
static void check(const Case &c) {
  tprt_gemm_args args = makeArgs(c);
  std::mt19937 generator(7);
  int64_t batches = c.batch0 * c.batch1;
  Elements a(c.dtype, args.a_b1 * batches);
  int64_t sizeB = (c.transposeB ? args.b_col * c.n : args.b_row * c.k);
  Elements b(c.dtype, sizeB * (c.sharesB ? 1 : batches));
  Elements result(c.dtype, args.c_b1 * batches), bias(c.dtype, c.n);
  for (Elements *elements : {&a, &b, &result, &bias})
    elements->randomize(generator);
  Elements before = result;
  if (!c.accumulate) // what isn't accumulated must not be read
    for (int64_t i = 0; i < c.batch0 * c.batch1 * c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j)
        result.set(i * args.c_row + j, NAN);

  LoneRank run;
  ASSERT_EQ(tprt_gemm(&run.rank, &args, a.data(), b.data(), result.data(),
                      c.hasBias ? bias.data() : nullptr),
            TPRT_OK)
      << run.rank.error;

  double epsilon = c.dtype == Dtype::F64   ? 1e-14
                   : c.dtype == Dtype::F32 ? 1e-6
                   : c.dtype == Dtype::F16 ? 1e-3
                                           : 8e-3;
  for (int64_t i0 = 0; i0 < c.batch0; ++i0)
    for (int64_t i1 = 0; i1 < c.batch1; ++i1)
      for (int64_t i = 0; i < c.m; ++i)
        for (int64_t j = 0; j < args.c_row; ++j) {
          int64_t at = i0 * args.c_b0 + i1 * args.c_b1 + i * args.c_row + j;
          if (j >= c.n) {
            ASSERT_EQ(result.get(at), before.get(at)) << "padding";
            continue;
          }
          double expected = c.accumulate ? before.get(at) : 0;
          if (c.hasBias)
            expected += bias.get(j);
          for (int64_t p = 0; p < c.k; ++p)
            expected += a.get(i0 * args.a_b0 + i1 * args.a_b1 + i * args.a_row +
                              p * args.a_col) *
                        b.get(i0 * args.b_b0 + i1 * args.b_b1 + p * args.b_row +
                              j * args.b_col);
          ASSERT_NEAR(result.get(at), expected,
                      epsilon * (std::abs(expected) + std::sqrt(c.k + 1.0)))
              << "batch " << i0 << ", " << i1 << " at " << i << ", " << j;
        }
}

class GemmTest : public testing::TestWithParam<Dtype> {};

TEST_P(GemmTest, EveryLayoutShapeAndEpilogue) {
  struct {
    int64_t m, n, k;
  } shapes[] = {{5, 7, 3}, {1, 7, 5}, {5, 1, 7}, {1, 1, 4}, {4, 6, 1},
                {1, 5, 1}, {5, 1, 1}, {3, 4, 0}, {0, 4, 3}, {4, 0, 3}};
  for (auto [m, n, k] : shapes)
    for (int bits = 0; bits < 64; ++bits) {
      SCOPED_TRACE(testing::Message()
                   << m << "x" << n << "x" << k << " bits " << bits);
      Case c{GetParam(), 2, 3, m, n, k};
      c.transposeA = bits & 1;
      c.transposeB = bits & 2;
      c.accumulate = bits & 4;
      c.hasBias = bits & 8;
      c.sharesB = bits & 16;
      c.padding = bits & 32 ? 3 : 0;
      check(c);
      if (HasFatalFailure())
        return;
    }
}

/// Larger than the blocks by which operands are packed and converted.
TEST_P(GemmTest, ManyBlocks) {
  for (int bits = 0; bits < 8; ++bits) {
    Case c{GetParam(), 1, 1, 260, 300, 9};
    if (bits & 4)
      c = {GetParam(), 1, 1, 9, 530, 390};
    c.transposeA = bits & 1;
    c.transposeB = bits & 2;
    c.hasBias = true;
    c.accumulate = true;
    check(c);
  }
}

/// Summing 4096 halves one by one would stop at 2048.
TEST(Gemm, HalvesAccumulateInF32) {
  Case c{Dtype::F16, 1, 1, 2, 2, 4096};
  tprt_gemm_args args = makeArgs(c);
  std::vector<Half> ones(2 * 4096, Half(1)), result(4);
  LoneRank run;
  ASSERT_EQ(tprt_gemm(&run.rank, &args, ones.data(), ones.data(), result.data(),
                      nullptr),
            TPRT_OK);
  for (Half value : result)
    EXPECT_EQ(static_cast<float>(value), 4096.0f);
}

/// A right operand that never changes is packed once; the product is the same.
TEST_P(GemmTest, PackedWeights) {
  if (GetParam() == Dtype::F64)
    GTEST_SKIP() << "OpenBLAS has f64";
  for (bool transposeB : {false, true}) {
    Case c{GetParam(), 1, 1, 7, 300, 20};
    c.transposeB = transposeB;
    tprt_gemm_args args = makeArgs(c);
    std::mt19937 generator(3);
    Elements a(c.dtype, 7 * 20), b(c.dtype, 20 * 300);
    a.randomize(generator);
    b.randomize(generator);
    auto multiply = [&](LoneRank &run) {
      Elements result(c.dtype, 7 * 300);
      EXPECT_EQ(tprt_gemm(&run.rank, &args, a.data(), b.data(), result.data(),
                          nullptr),
                TPRT_OK);
      std::vector<double> values;
      for (int64_t i = 0; i < result.size(); ++i)
        values.push_back(result.get(i));
      return values;
    };
    LoneRank plain, packing;
    std::vector<std::span<const std::byte>> blocks{
        {a.data(), 1}, {b.data(), size_t(b.size() * byteWidth(c.dtype))}};
    packing.rank.gemm.setConstants(blocks, 1 << 20);
    std::vector<double> expected = multiply(plain);
    EXPECT_EQ(plain.rank.gemm.getPackedBytes(), 0);
    for (int run = 0; run < 2; ++run) {
      EXPECT_EQ(multiply(packing), expected);
      EXPECT_GE(packing.rank.gemm.getPackedBytes(), 20 * 300 * 4);
      EXPECT_LT(packing.rank.gemm.getPackedBytes(), 20 * 332 * 4);
    }
    // A new value counts once it is announced.
    b.randomize(generator);
    packing.rank.gemm.setConstants(blocks, 1 << 20);
    EXPECT_EQ(multiply(packing), multiply(plain));
    // No room, no copy.
    packing.rank.gemm.setConstants(blocks, 1000);
    EXPECT_EQ(multiply(packing), multiply(plain));
    EXPECT_EQ(packing.rank.gemm.getPackedBytes(), 0);
  }
}

/// A row's result is the same bits alone and among others.
TEST(Gemm, RowsDontDependOnEachOther) {
  constexpr int64_t m = 101, n = 40, k = 500;
  Elements a(Dtype::F32, m * k), b(Dtype::F32, k * n);
  std::mt19937 generator(5);
  a.randomize(generator);
  b.randomize(generator);
  auto multiply = [&](int64_t first, int64_t rows) {
    tprt_gemm_args args = makeArgs({Dtype::F32, 1, 1, rows, n, k});
    std::vector<float> result(rows * n);
    LoneRank run;
    EXPECT_EQ(tprt_gemm(&run.rank, &args, a.data() + first * k * 4, b.data(),
                        result.data(), nullptr),
              TPRT_OK);
    return result;
  };
  std::vector<float> all = multiply(0, m);
  for (int64_t first : {0, 10, 96}) {
    std::vector<float> some = multiply(first, 5);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), &all[first * n]));
  }
}

/// Several threads share out columns, and change no bit.
TEST(Gemm, ThreadsDontChangeResults) {
  constexpr int64_t m = 70, n = 700, k = 500;
  for (Dtype dtype : {Dtype::F32, Dtype::BF16}) {
    tprt_gemm_args args = makeArgs({dtype, 1, 1, m, n, k});
    Elements a(dtype, m * k), b(dtype, k * n), bias(dtype, n);
    std::mt19937 generator(5);
    for (Elements *elements : {&a, &b, &bias})
      elements->randomize(generator);
    auto multiply = [&](int threads) {
      setGemmThreads(threads);
      std::vector<std::byte> result(m * n * byteWidth(dtype));
      LoneRank run;
      EXPECT_EQ(tprt_gemm(&run.rank, &args, a.data(), b.data(), result.data(),
                          bias.data()),
                TPRT_OK);
      setGemmThreads(1);
      return result;
    };
    std::vector<std::byte> expected = multiply(1);
    EXPECT_EQ(multiply(2), expected);
    EXPECT_EQ(multiply(5), expected);
  }
}

TEST(Gemm, InvalidArguments) {
  auto errorWith = [](auto edit) {
    tprt_gemm_args args = makeArgs({Dtype::F32, 1, 1, 2, 3, 4});
    edit(args);
    LoneRank run;
    float data[16] = {};
    EXPECT_EQ(tprt_gemm(&run.rank, &args, data, data, data, nullptr),
              TPRT_INVALID_ARGUMENT);
    return run.rank.error;
  };
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.dtype = TPRT_I64; }),
                       "dtype is not f32, f64, f16 or bf16"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.m = -1; }),
                       "a size is out of range"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.a_col = 2; }),
                       "neither stride of A is 1"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.b_row = 0; }),
                       "neither stride of B is 1, or its rows overlap"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.c_row = 2; }),
                       "the row stride of C is less than its columns"));
}

INSTANTIATE_TEST_SUITE_P(Gemm, GemmTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });
