//===- GemmTest.cpp - tprt_gemm against the definition --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoneRank.h"
#include "TestUtils.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <random>
#include <thread>

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
  /// Null where there are none.
  std::byte *data() { return count ? bytes.data() : nullptr; }
  int64_t size() const { return count; }
  std::span<const std::byte> getBytes() const { return bytes; }

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
  int64_t activation = TPRT_NO_ACTIVATION;
  bool hasAddend = false, hasFactor = false;
};

} // namespace

static std::shared_ptr<ConstantOperands>
makeConstants(std::vector<std::span<const std::byte>> blocks,
              int64_t maxBytes) {
  std::vector<ConstantBlock> constants;
  for (std::span<const std::byte> block : blocks)
    constants.push_back({block});
  return std::make_shared<ConstantOperands>(constants, maxBytes);
}

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
  args.activation = c.activation;
  args.addend_row = c.n + 2 * c.padding;
  args.addend_b1 = args.addend_row * c.m;
  args.addend_b0 = args.addend_b1 * c.batch1;
  args.factor_row = c.n + 3 * c.padding;
  args.factor_b0 = args.factor_row * c.m; // batches the other way round
  args.factor_b1 = args.factor_b0 * c.batch0;
  return args;
}

/// An activation by its definition.
static double evaluate(int64_t activation, double x) {
  switch (activation) {
  case TPRT_RELU:
    return std::max(x, 0.0);
  case TPRT_GELU:
    return x * std::erfc(-x / std::sqrt(2.0)) / 2;
  case TPRT_GELU_TANH:
    return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) *
                             (x + 0.044715 * x * x * x)));
  case TPRT_SILU:
    return x / (1 + std::exp(-x));
  default:
    return x;
  }
}

/// Runs one case against the definition, in double, f32 by `library`; checks
/// that padding is left alone.
static void check(const Case &c, GemmLibrary library) {
  tprt_gemm_args args = makeArgs(c);
  std::mt19937 generator(7);
  int64_t batches = c.batch0 * c.batch1;
  Elements a(c.dtype, args.a_b1 * batches);
  int64_t sizeB = (c.transposeB ? args.b_col * c.n : args.b_row * c.k);
  Elements b(c.dtype, sizeB * (c.sharesB ? 1 : batches));
  Elements result(c.dtype, args.c_b1 * batches), bias(c.dtype, c.n),
      addend(c.dtype, args.addend_b1 * batches),
      factor(c.dtype, args.factor_b0 * batches);
  for (Elements *elements : {&a, &b, &result, &bias, &addend, &factor})
    elements->randomize(generator);
  Elements before = result;
  if (!c.accumulate) // what isn't accumulated must not be read
    for (int64_t i = 0; i < c.batch0 * c.batch1 * c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j)
        result.set(i * args.c_row + j, NAN);

  LoneRank run;
  auto choices = std::make_shared<GemmChoices>();
  choices->library = library;
  run.rank.gemm.setChoices(choices);
  ASSERT_EQ(tprt_gemm(&run.rank, &args, a.data(), b.data(), result.data(),
                      c.hasBias ? bias.data() : nullptr,
                      c.hasAddend ? addend.data() : nullptr,
                      c.hasFactor ? factor.data() : nullptr),
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
          if (c.hasAddend)
            expected += addend.get(i0 * args.addend_b0 + i1 * args.addend_b1 +
                                   i * args.addend_row + j);
          expected = evaluate(c.activation, expected);
          if (c.hasFactor)
            expected *= factor.get(i0 * args.factor_b0 + i1 * args.factor_b1 +
                                   i * args.factor_row + j);
          ASSERT_NEAR(result.get(at), expected,
                      epsilon * (std::abs(expected) + std::sqrt(c.k + 1.0)))
              << "batch " << i0 << ", " << i1 << " at " << i << ", " << j;
        }
}

/// The same by all that is installed.
static void check(const Case &c) {
  for (GemmLibrary library :
       {GemmLibrary::Tiles, GemmLibrary::OpenBlas, GemmLibrary::OneDnn}) {
    SCOPED_TRACE(toString(library));
    if (getVersion(library))
      check(c, library);
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

/// Tiles of every height, one panel or several, and with or without a last term
/// that has no partner.
TEST_P(GemmTest, RandomShapes) {
  std::mt19937 generator(11);
  auto draw = [&](int64_t most) { return 1 + int64_t(generator() % most); };
  for (int i = 0; i < 60; ++i) {
    Case c{GetParam(),           1,         1,
           draw(i % 2 ? 8 : 40), draw(300), draw(i % 4 ? 60 : 900)};
    c.transposeA = draw(2) == 1;
    c.transposeB = draw(2) == 1;
    c.hasBias = draw(2) == 1;
    c.hasAddend = draw(2) == 1;
    c.padding = draw(3) - 1;
    SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << "x" << c.k);
    check(c, GemmLibrary::Tiles);
    if (HasFatalFailure())
      return;
  }
}

/// Every way to end, where OpenBLAS multiplies vectors, by one tile, and by
/// several blocks of terms and columns with edges.
TEST_P(GemmTest, EveryEpilogue) {
  struct {
    int64_t batch0, batch1, m, n, k;
  } shapes[] = {{2, 3, 1, 7, 5},   {2, 2, 5, 1, 7}, {2, 1, 3, 5, 4},
                {2, 3, 13, 37, 3}, {1, 1, 4, 3, 0}, {1, 1, 13, 37, 800},
                {1, 1, 5, 530, 3}};
  for (auto [batch0, batch1, m, n, k] : shapes)
    for (int64_t activation = TPRT_NO_ACTIVATION; activation <= TPRT_SILU;
         ++activation)
      for (int bits = 0; bits < 16; ++bits) {
        SCOPED_TRACE(testing::Message()
                     << m << "x" << n << "x" << k << " activation "
                     << activation << " bits " << bits);
        Case c{GetParam(), batch0, batch1, m, n, k};
        c.activation = activation;
        c.hasBias = bits & 1;
        c.hasFactor = bits & 2;
        c.hasAddend = bits & 4;
        c.accumulate = (bits & 8) && !c.hasAddend;
        c.sharesB = bits & 8;
        c.padding = bits & 8 ? 3 : 0;
        check(c);
        if (HasFatalFailure())
          return;
      }
}

/// Activations alone: a product by ones of one term is exact.
static std::vector<float> activate(int64_t activation,
                                   const std::vector<float> &x) {
  constexpr int64_t n = 9;
  int64_t m = x.size();
  tprt_gemm_args args = makeArgs({Dtype::F32, 1, 1, m, n, 1});
  args.activation = activation;
  std::vector<float> ones(n, 1.0f), result(m * n);
  LoneRank run;
  EXPECT_EQ(tprt_gemm(&run.rank, &args, x.data(), ones.data(), result.data(),
                      nullptr, nullptr, nullptr),
            TPRT_OK);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 1; j < n; ++j) // wherever it stands
      EXPECT_EQ(std::bit_cast<uint32_t>(result[i * n + j]),
                std::bit_cast<uint32_t>(result[i * n]));
    result[i] = result[i * n];
  }
  result.resize(m);
  return result;
}

TEST(Gemm, ActivationsAreAccurate) {
  std::vector<float> x;
  // From about -13.2 on results are denormal, from -14.4 on 0.
  for (double value = -16; value < 12; value += 0.0037)
    x.push_back(static_cast<float>(value));
  for (double exponent = -30; exponent < 0; exponent += 0.1)
    for (double sign : {-1.0, 1.0})
      x.push_back(static_cast<float>(sign * std::exp(exponent)));
  for (int64_t activation = TPRT_RELU; activation <= TPRT_SILU; ++activation) {
    std::vector<float> y = activate(activation, x);
    for (size_t i = 0; i < x.size(); ++i) {
      double expected = evaluate(activation, x[i]);
      // Two units in the last place of x at most, and tails that vanish
      // smoothly.
      ASSERT_NEAR(
          y[i], expected,
          std::min(std::abs(x[i]) * 0x1p-22, std::abs(expected) * 1e-5 + 1e-20))
          << "activation " << activation << " of " << x[i];
    }
  }
}

TEST(Gemm, ActivationsOfSpecialNumbers) {
  const float inf = INFINITY;
  for (int64_t activation = TPRT_RELU; activation <= TPRT_SILU; ++activation) {
    std::vector<float> y =
        activate(activation, {inf, NAN, 0.0f, -1e30f, 1e30f});
    EXPECT_EQ(y[0], inf);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 0.0f);
    EXPECT_EQ(y[4], 1e30f);
  }
  EXPECT_EQ(activate(TPRT_RELU, {-inf})[0], 0.0f);
  EXPECT_FALSE(std::signbit(activate(TPRT_RELU, {-0.0f})[0]));
}

/// Summing 4096 halves one by one would stop at 2048.
TEST(Gemm, HalvesAccumulateInF32) {
  Case c{Dtype::F16, 1, 1, 2, 2, 4096};
  tprt_gemm_args args = makeArgs(c);
  std::vector<Half> ones(2 * 4096, Half(1)), result(4);
  LoneRank run;
  ASSERT_EQ(tprt_gemm(&run.rank, &args, ones.data(), ones.data(), result.data(),
                      nullptr, nullptr, nullptr),
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
                          nullptr, nullptr, nullptr),
                TPRT_OK);
      std::vector<double> values;
      for (int64_t i = 0; i < result.size(); ++i)
        values.push_back(result.get(i));
      return values;
    };
    LoneRank plain, packing;
    std::shared_ptr<ConstantOperands> constants;
    auto announce = [&](int64_t maxBytes) {
      constants = makeConstants({{a.data(), 1}, b.getBytes()}, maxBytes);
      packing.rank.gemm.setConstants(constants);
    };
    announce(1 << 20);
    std::vector<double> expected = multiply(plain);
    for (int run = 0; run < 2; ++run) {
      EXPECT_EQ(multiply(packing), expected);
      int64_t width = byteWidth(c.dtype); // f16 and bf16 aren't widened
      EXPECT_GE(constants->getPackedBytes(), 20 * 300 * width);
      EXPECT_LT(constants->getPackedBytes(), 20 * 332 * width);
    }
    // A new value counts once it is announced.
    b.randomize(generator);
    announce(1 << 20);
    EXPECT_EQ(multiply(packing), multiply(plain));
    // No room, no copy.
    announce(1000);
    EXPECT_EQ(multiply(packing), multiply(plain));
    EXPECT_EQ(constants->getPackedBytes(), 0);
  }
}

/// A block that only has an address is read to be packed, once for all ranks, or
/// else to be multiplied.
TEST(Gemm, BlocksThatAreOnlyNamed) {
  Case c{Dtype::F32, 1, 1, 7, 90, 20};
  tprt_gemm_args args = makeArgs(c);
  Elements a(c.dtype, 7 * 20), b(c.dtype, 21 * 90);
  std::mt19937 generator(3);
  a.randomize(generator);
  b.randomize(generator);
  constexpr int64_t offset = 90 * 4; // B begins in the second row
  int reads = 0;
  std::byte name[21 * 90 * 4] = {}; // isn't what the block holds
  auto makeNamed = [&](int64_t maxBytes) {
    return std::make_shared<ConstantOperands>(
        std::vector<ConstantBlock>{{{name, sizeof(name)},
                                    [&] {
                                      ++reads;
                                      return std::shared_ptr<const std::byte>(
                                          b.data(), [](auto *) {});
                                    }}},
        maxBytes);
  };
  auto multiply = [&](const void *right, LoneRank &run) {
    std::vector<float> result(7 * 90);
    EXPECT_EQ(tprt_gemm(&run.rank, &args, a.data(), right, result.data(),
                        nullptr, nullptr, nullptr),
              TPRT_OK);
    return result;
  };
  LoneRank plain;
  std::vector<float> expected = multiply(b.data() + offset, plain);
  for (int64_t maxBytes : {1 << 20, 0}) {
    auto constants = makeNamed(maxBytes);
    reads = 0;
    LoneRank ranks[2];
    for (LoneRank &run : ranks) {
      run.rank.gemm.setConstants(constants);
      for (int i = 0; i < 2; ++i)
        EXPECT_EQ(multiply(name + offset, run), expected);
    }
    EXPECT_EQ(reads, 1);
    EXPECT_EQ(constants->getPackedBytes() > 0, maxBytes > 0);
  }
}

/// A row's result is the same bits alone and among others.
TEST_P(GemmTest, RowsDontDependOnEachOther) {
  if (GetParam() == Dtype::F64)
    GTEST_SKIP() << "OpenBLAS has f64";
  constexpr int64_t m = 101, n = 200, k = 501;
  int64_t width = byteWidth(GetParam());
  Elements a(GetParam(), m * k), b(GetParam(), k * n), bias(GetParam(), n),
      addend(GetParam(), m * n);
  std::mt19937 generator(5);
  for (Elements *elements : {&a, &b, &bias, &addend})
    elements->randomize(generator);
  LoneRank run;
  run.rank.gemm.setConstants(makeConstants({b.getBytes()}, 1 << 20));
  for (bool hasBias : {false, true})
    for (bool hasAddend : {false, true})
      for (auto activation : {TPRT_NO_ACTIVATION, TPRT_RELU, TPRT_GELU}) {
        auto multiply = [&](int64_t first, int64_t rows) {
          tprt_gemm_args args = makeArgs({GetParam(), 1, 1, rows, n, k});
          args.activation = activation;
          args.addend_row = n;
          std::vector<std::byte> result(rows * n * width);
          EXPECT_EQ(
              tprt_gemm(&run.rank, &args, a.data() + first * k * width,
                        b.data(), result.data(),
                        hasBias ? bias.data() : nullptr,
                        hasAddend ? addend.data() + first * n * width : nullptr,
                        nullptr),
              TPRT_OK);
          return result;
        };
        std::vector<std::byte> all = multiply(0, m);
        for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 12, 13, 17, 33})
          for (int64_t first : {0, 10, 68}) {
            std::vector<std::byte> some = multiply(first, rows);
            EXPECT_TRUE(
                std::equal(some.begin(), some.end(), &all[first * n * width]))
                << rows << " rows";
          }
      }
}

/// Ranks of several sessions, with numbers of threads of their own, at once.
TEST(Gemm, StatesDontInterfere) {
  constexpr int64_t m = 64, n = 512, k = 512;
  tprt_gemm_args args = makeArgs({Dtype::F32, 1, 1, m, n, k});
  Elements a(Dtype::F32, m * k), b(Dtype::F32, k * n);
  std::mt19937 generator(7);
  a.randomize(generator);
  b.randomize(generator);
  auto choices = std::make_shared<GemmChoices>();
  choices->library = GemmLibrary::OpenBlas;
  auto multiply = [&](LoneRank &run) {
    std::vector<std::byte> result(m * n * sizeof(float));
    EXPECT_EQ(tprt_gemm(&run.rank, &args, a.data(), b.data(), result.data(),
                        nullptr, nullptr, nullptr),
              TPRT_OK);
    return result;
  };
  std::vector<std::thread> threads;
  std::atomic<int> different = 0;
  for (int count : {1, 2, 3, 1}) {
    auto run = std::make_shared<LoneRank>();
    run->rank.gemm.setChoices(choices);
    run->rank.gemm.setThreads(count);
    threads.emplace_back([&, run, expected = multiply(*run)] {
      for (int i = 0; i < 30; ++i)
        different += multiply(*run) != expected;
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(different, 0);
}

/// Several threads share out columns, and change no bit.
TEST(Gemm, ThreadsDontChangeResults) {
  constexpr int64_t m = 70, n = 700, k = 500;
  for (Dtype dtype : {Dtype::F32, Dtype::BF16}) {
    tprt_gemm_args args = makeArgs({dtype, 1, 1, m, n, k});
    args.activation = TPRT_GELU;
    Elements a(dtype, m * k), b(dtype, k * n), bias(dtype, n),
        addend(dtype, m * n), factor(dtype, m * n);
    std::mt19937 generator(5);
    for (Elements *elements : {&a, &b, &bias, &addend, &factor})
      elements->randomize(generator);
    auto multiply = [&](int threads) {
      std::vector<std::byte> result(m * n * byteWidth(dtype));
      LoneRank run;
      run.rank.gemm.setThreads(threads);
      EXPECT_EQ(tprt_gemm(&run.rank, &args, a.data(), b.data(), result.data(),
                          bias.data(), addend.data(), factor.data()),
                TPRT_OK);
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
    float data[16] = {}, addend[16] = {};
    EXPECT_EQ(
        tprt_gemm(&run.rank, &args, data, data, data, nullptr, addend, nullptr),
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
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.activation = 5; }),
                       "the activation is unknown"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.accumulate = 1; }),
                       "a product that accumulates can't have an addend"));
}

INSTANTIATE_TEST_SUITE_P(Gemm, GemmTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });
