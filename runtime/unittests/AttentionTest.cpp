//===- AttentionTest.cpp - Attention and its gradient, by definition ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoneRank.h"
#include "TestUtils.h"

#include <cmath>
#include <limits>
#include <random>

using namespace tprt;
using namespace tprt::test;

namespace {

/// Values of one dtype, as doubles and as they are stored.
struct Operand {
  Operand(Dtype dtype, int64_t count, std::mt19937 &generator)
      : values(count), bytes(std::max<int64_t>(count, 1) * byteWidth(dtype)) {
    std::uniform_real_distribution<double> distribution(-2, 2);
    for (int64_t i = 0; i < count; ++i) {
      float single = static_cast<float>(distribution(generator));
      double wide = single;
      if (dtype == Dtype::F64)
        std::memcpy(&bytes[i * 8], &wide, 8);
      else if (dtype == Dtype::F32)
        std::memcpy(&bytes[i * 4], &single, 4);
      else
        convertFromF32(dtype, &single, &bytes[i * 2], 1);
      values[i] = loadAsDouble(dtype, bytes.data(), i);
    }
  }

  std::vector<double> values;
  std::vector<std::byte> bytes;
};

/// Batch 2, heads in groups of two; heads lie behind the rows in memory.
struct Case {
  Dtype dtype = Dtype::F32;
  int64_t rows = 5, columns = 7, depth = 3, width = 4;
  bool causal = false;
  int32_t mask = TPRT_NO_MASK;
  bool maskPerRow = true;
  bool isTransposed = false; ///< key and value lie by columns
  bool isBlock = false;      ///< the columns are a block of all columns
  int64_t offset = 0;        ///< of a causal block
};

constexpr int64_t batches = 2, keyHeads = 2, group = 2;

} // namespace

static tprt_attention_strides makeStrides(int64_t heads, int64_t rows,
                                          int64_t cols, bool perGroup,
                                          bool isTransposed = false) {
  tprt_attention_strides strides = {};
  int64_t *batch = strides.batch + TPRT_ATTENTION_BATCHES - 3;
  if (isTransposed) {
    strides.row = 1;
    strides.col = rows * heads;
    batch[1] = rows;
  } else {
    strides.row = heads * cols;
    strides.col = 1;
    batch[1] = cols * (perGroup ? group : 1);
    batch[2] = perGroup ? cols : 0;
  }
  batch[0] = heads * rows * cols;
  return strides;
}

namespace {

/// Attention's operands, and what it gives, by the definition, in doubles.
struct Problem {
  static constexpr int64_t heads = keyHeads * group;

  explicit Problem(const Case &c)
      : c(c), query(c.dtype, batches * heads * c.rows * c.depth, generator),
        key(c.dtype, batches * keyHeads * c.columns * c.depth, generator),
        value(c.dtype, batches * keyHeads * c.columns * c.width, generator),
        added(c.dtype, batches * c.rows * c.columns, generator),
        output(c.dtype, batches * heads * c.rows * c.width, generator),
        keep(batches * c.rows * c.columns) {
    args.dtype = static_cast<int32_t>(c.dtype);
    args.mask = c.mask;
    args.scale = 0.5;
    args.causal = c.causal;
    args.rows = c.rows;
    args.columns = c.columns;
    args.depth = c.depth;
    args.width = c.width;
    std::fill(std::begin(args.batch), std::end(args.batch), 1);
    int64_t *batch = args.batch + TPRT_ATTENTION_BATCHES - 3;
    batch[0] = batches;
    batch[1] = keyHeads;
    batch[2] = group;
    args.query = makeStrides(heads, c.rows, c.depth, true);
    args.key = makeStrides(keyHeads, c.columns, c.depth, false, c.isTransposed);
    args.value =
        makeStrides(keyHeads, c.columns, c.width, false, c.isTransposed);
    args.output = makeStrides(heads, c.rows, c.width, true);
    args.mask_strides.batch[TPRT_ATTENTION_BATCHES - 3] =
        (c.maskPerRow ? c.rows : 1) * c.columns;
    args.mask_strides.row = c.maskPerRow ? c.columns : 0;
    args.mask_strides.col = 1;
    lse = makeStrides(heads, c.rows, 1, true);
    for (size_t i = 0; i < keep.size(); ++i)
      keep[i] = !isHidden(i) && generator() % 3 != 0;
    for (size_t i = 0; i < keep.size(); ++i)
      if (isHidden(i) || generator() % 5 == 0)
        hide(i);
  }

  /// Whether the mask hides all of the row that element `i` of it is in.
  bool isHidden(int64_t i) const { return i / c.columns % 3 == 1; }

  /// Makes element `i` of the mask that is added -inf.
  void hide(int64_t i) {
    constexpr double wide = -INFINITY;
    constexpr float single = -INFINITY;
    added.values[i] = wide;
    if (c.dtype == Dtype::F64)
      std::memcpy(&added.bytes[i * 8], &wide, 8);
    else if (c.dtype == Dtype::F32)
      std::memcpy(&added.bytes[i * 4], &single, 4);
    else
      convertFromF32(c.dtype, &single, &added.bytes[i * 2], 1);
  }

  const void *getMask() const {
    return c.mask == TPRT_ADDED_MASK     ? added.bytes.data()
           : c.mask == TPRT_BOOLEAN_MASK ? (const void *)keep.data()
                                         : nullptr;
  }

  static int64_t at(const tprt_attention_strides &s, int64_t b, int64_t h,
                    int64_t row, int64_t col) {
    const int64_t *strides = s.batch + TPRT_ATTENTION_BATCHES - 3;
    return b * strides[0] + h / group * strides[1] + h % group * strides[2] +
           row * s.row + col * s.col;
  }

  /// Calls visit for the elements of column `j` of the scores in the key or the
  /// value.
  template <typename Visit>
  void forEachElement(const Operand &operand, int64_t j, Visit visit) const {
    bool isKey = &operand == &key;
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t e = 0; e < (isKey ? c.depth : c.width); ++e)
          visit(at(isKey ? args.key : args.value, b, h, j, e));
  }

  /// `lse` becomes the logarithm of the sum of the exponentials.
  std::vector<double> getWeights(int64_t b, int64_t h, int64_t i,
                                 double *lse = nullptr) const {
    std::vector<double> weights(c.columns);
    double sum = 0;
    for (int64_t j = 0; j < c.columns; ++j) {
      double score = 0;
      for (int64_t d = 0; d < c.depth; ++d)
        score += query.values[at(args.query, b, h, i, d)] *
                 key.values[at(args.key, b, h, j, d)];
      score *= args.scale;
      int64_t maskAt = at(args.mask_strides, b, h, i, j);
      if (c.mask == TPRT_ADDED_MASK)
        score += added.values[maskAt];
      bool isSeen = !(c.causal && j > i + c.offset) &&
                    !(c.mask == TPRT_BOOLEAN_MASK && !keep[maskAt]);
      sum += weights[j] = isSeen ? std::exp(score) : 0;
    }
    for (double &weight : weights)
      weight /= sum == 0 ? 1 : sum; // of a row that sees nothing
    if (lse)
      *lse = std::log(sum);
    return weights;
  }

  double getTolerance() const {
    return c.dtype == Dtype::F64   ? 1e-13
           : c.dtype == Dtype::F32 ? 1e-5
           : c.dtype == Dtype::F16 ? 2e-3
                                   : 2e-2;
  }

  testing::Message describe() const {
    return testing::Message()
           << toString(c.dtype) << " " << c.rows << "x" << c.columns << " of "
           << c.depth << ", " << c.width << " causal " << c.causal << " mask "
           << c.mask << c.maskPerRow << " transposed " << c.isTransposed
           << " block " << c.isBlock << " offset " << c.offset;
  }

  const int64_t *getOffset() const { return c.causal ? &c.offset : nullptr; }
  /// That of numbers of rows.
  Dtype getWideDtype() const {
    return c.dtype == Dtype::F64 ? Dtype::F64 : Dtype::F32;
  }

  const Case c;
  std::mt19937 generator{11};
  tprt_attention_args args = {};
  tprt_attention_strides lse = {};
  Operand query, key, value, added, output;
  std::vector<uint8_t> keep;
};

} // namespace

static void check(const Case &c) {
  Problem p(c);
  SCOPED_TRACE(p.describe());
  LoneRank run;
  tprt_attention_block_args block = {p.args, p.lse};
  Operand lse(p.getWideDtype(), batches * Problem::heads * c.rows, p.generator);
  ASSERT_EQ(c.isBlock
                ? tprt_attention_block(&run.rank, &block, p.query.bytes.data(),
                                       p.key.bytes.data(), p.value.bytes.data(),
                                       p.getMask(), p.getOffset(),
                                       p.output.bytes.data(), lse.bytes.data())
                : tprt_attention(&run.rank, &p.args, p.query.bytes.data(),
                                 p.key.bytes.data(), p.value.bytes.data(),
                                 p.getMask(), p.output.bytes.data()),
            TPRT_OK)
      << run.rank.error;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < Problem::heads; ++h)
      for (int64_t i = 0; i < c.rows; ++i) {
        double expectedLse;
        std::vector<double> weights = p.getWeights(b, h, i, &expectedLse);
        if (c.isBlock) {
          double found = loadAsDouble(p.getWideDtype(), lse.bytes.data(),
                                      p.at(p.lse, b, h, i, 0));
          if (std::isinf(expectedLse))
            ASSERT_EQ(found, expectedLse);
          else
            ASSERT_NEAR(found, expectedLse, p.getTolerance());
        }
        for (int64_t e = 0; e < c.width; ++e) {
          double expected = 0;
          for (int64_t j = 0; j < c.columns; ++j)
            expected +=
                weights[j] * p.value.values[p.at(p.args.value, b, h, j, e)];
          ASSERT_NEAR(loadAsDouble(c.dtype, p.output.bytes.data(),
                                   p.at(p.args.output, b, h, i, e)),
                      expected, p.getTolerance())
              << "batch " << b << " head " << h << " row " << i;
        }
      }
}

/// The gradients, those of key and value by head, which lie by columns where
/// the operands do. Of a block, half of each row's weights are in other columns.
static void checkGradient(const Case &c) {
  Problem p(c);
  SCOPED_TRACE(p.describe());
  constexpr int64_t heads = Problem::heads;
  tprt_attention_gradient_args all = {};
  all.attention = p.args;
  all.query_gradient = makeStrides(heads, c.rows, c.depth, true);
  all.key_gradient = makeStrides(heads, c.columns, c.depth, true);
  all.value_gradient = makeStrides(heads, c.columns, c.width, true);
  if (c.isTransposed) { // batch, head, column, row
    for (auto [strides, width] : {std::pair(&all.key_gradient, c.depth),
                                  std::pair(&all.value_gradient, c.width)}) {
      int64_t *batch = strides->batch + TPRT_ATTENTION_BATCHES - 3;
      strides->row = 1;
      strides->col = c.columns;
      batch[1] = group * width * c.columns;
      batch[2] = width * c.columns;
    }
  }
  Operand dQuery(c.dtype, p.query.values.size(), p.generator);
  Operand dKey(c.dtype, batches * heads * c.columns * c.depth, p.generator);
  Operand dValue(c.dtype, batches * heads * c.columns * c.width, p.generator);
  constexpr double rowSum = 0.25;
  tprt_attention_block_gradient_args block = {all, p.lse, p.lse};
  std::vector<double> lse(batches * heads * c.rows), delta(lse.size(), rowSum);
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < c.rows; ++i) {
        double own;
        p.getWeights(b, h, i, &own);
        lse[p.at(p.lse, b, h, i, 0)] = own + std::log(2);
      }
  std::vector<float> narrowLse(lse.begin(), lse.end()),
      narrowDelta(delta.begin(), delta.end());
  bool isWide = c.dtype == Dtype::F64;
  LoneRank run;
  ASSERT_EQ(
      c.isBlock
          ? tprt_attention_block_gradient(
                &run.rank, &block, p.query.bytes.data(), p.key.bytes.data(),
                p.value.bytes.data(), p.getMask(), p.getOffset(),
                p.output.bytes.data(),
                isWide ? (const void *)lse.data() : narrowLse.data(),
                isWide ? (const void *)delta.data() : narrowDelta.data(),
                dQuery.bytes.data(), dKey.bytes.data(), dValue.bytes.data())
          : tprt_attention_gradient(
                &run.rank, &all, p.query.bytes.data(), p.key.bytes.data(),
                p.value.bytes.data(), p.getMask(), p.output.bytes.data(),
                dQuery.bytes.data(), dKey.bytes.data(), dValue.bytes.data()),
      TPRT_OK)
      << run.rank.error;

  auto expectNear = [&](const Operand &actual, int64_t at, double expected) {
    EXPECT_NEAR(loadAsDouble(c.dtype, actual.bytes.data(), at), expected,
                2 * p.getTolerance() * std::max(1.0, std::abs(expected)));
  };
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> expectedKey(c.columns * c.depth),
          expectedValue(c.columns * c.width);
      for (int64_t i = 0; i < c.rows; ++i) {
        std::vector<double> weights = p.getWeights(b, h, i),
                            dWeights(c.columns);
        double mean = c.isBlock ? rowSum : 0;
        for (int64_t j = 0; j < c.columns; ++j) {
          if (c.isBlock)
            weights[j] /= 2;
          for (int64_t e = 0; e < c.width; ++e) {
            double g = p.output.values[p.at(p.args.output, b, h, i, e)];
            dWeights[j] += g * p.value.values[p.at(p.args.value, b, h, j, e)];
            expectedValue[j * c.width + e] += weights[j] * g;
          }
          if (!c.isBlock)
            mean += weights[j] * dWeights[j];
        }
        std::vector<double> expectedQuery(c.depth);
        for (int64_t j = 0; j < c.columns; ++j)
          for (int64_t d = 0; d < c.depth; ++d) {
            double score = weights[j] * (dWeights[j] - mean) * p.args.scale;
            expectedQuery[d] +=
                score * p.key.values[p.at(p.args.key, b, h, j, d)];
            expectedKey[j * c.depth + d] +=
                score * p.query.values[p.at(p.args.query, b, h, i, d)];
          }
        for (int64_t d = 0; d < c.depth; ++d)
          expectNear(dQuery, p.at(all.query_gradient, b, h, i, d),
                     expectedQuery[d]);
      }
      for (int64_t j = 0; j < c.columns; ++j) {
        for (int64_t d = 0; d < c.depth; ++d)
          expectNear(dKey, p.at(all.key_gradient, b, h, j, d),
                     expectedKey[j * c.depth + d]);
        for (int64_t e = 0; e < c.width; ++e)
          expectNear(dValue, p.at(all.value_gradient, b, h, j, e),
                     expectedValue[j * c.width + e]);
      }
      ASSERT_FALSE(testing::Test::HasFailure())
          << "batch " << b << " head " << h;
    }
}

class AttentionTest : public testing::TestWithParam<Dtype> {};

static void forMasksAndLayouts(Dtype dtype, void (*check)(const Case &)) {
  for (int64_t rows : {1, 5, 9}) // one, few and many
    for (int bits = 0; bits < 24; ++bits) {
      Case c{dtype, rows};
      c.causal = bits & 1;
      c.maskPerRow = bits & 2;
      c.isTransposed = bits & 4;
      c.mask = bits / 8;
      check(c);
    }
}

TEST_P(AttentionTest, MasksAndLayouts) {
  forMasksAndLayouts(GetParam(), check);
}
TEST_P(AttentionTest, GradientOfMasksAndLayouts) {
  forMasksAndLayouts(GetParam(), checkGradient);
}

/// Blocks before, on and behind the diagonal.
static void forBlocks(Dtype dtype, void (*check)(const Case &)) {
  for (auto [rows, columns] : {std::pair{1, 7}, {5, 7}, {9, 3}, {100, 70}})
    for (int64_t offset : {-200, -50, -4, -1, 0, 2, 5, 200})
      for (int mask = 0; mask < 4; ++mask) {
        Case c{dtype, rows, columns};
        c.isBlock = true;
        c.causal = mask == 3;
        c.mask = mask % 3;
        c.offset = c.causal ? offset : 0;
        if (c.causal || offset == 0)
          check(c);
      }
}

TEST_P(AttentionTest, Blocks) { forBlocks(GetParam(), check); }
TEST_P(AttentionTest, GradientOfBlocks) {
  forBlocks(GetParam(), checkGradient);
}

/// More rows than a block has, sizes that no tile divides, one of each, none.
static void forSizes(Dtype dtype, void (*check)(const Case &)) {
  struct {
    int64_t rows, columns, depth, width;
  } sizes[] = {{1, 1, 1, 1},    {1, 70, 16, 33}, {100, 100, 40, 24},
               {49, 97, 32, 8}, {97, 50, 8, 17}, {3, 17, 0, 2},
               {0, 5, 3, 2},    {5, 0, 3, 2},    {5, 7, 3, 0}};
  for (auto [rows, columns, depth, width] : sizes)
    for (bool causal : {false, true}) {
      Case c{dtype, rows, columns, depth, width, causal};
      check(c);
    }
}

TEST_P(AttentionTest, Sizes) { forSizes(GetParam(), check); }
TEST_P(AttentionTest, GradientOfSizes) { forSizes(GetParam(), checkGradient); }

/// The columns before and behind those that a boolean mask keeps aren't read,
/// and the results have the bits of a mask that is added, which hides the same
/// columns but lets them be computed.
TEST_P(AttentionTest, HiddenColumnsAreNotRead) {
  constexpr int64_t columns = 1000, filled = 500, window = 130;
  struct {
    const char *name;
    bool (*keeps)(int64_t row, int64_t column);
    int64_t first, last; ///< of what any row sees
  } patterns[] = {
      {"cache", [](int64_t i, int64_t j) { return j < 100 + i; }, 0, 200},
      {"left padding", [](int64_t, int64_t j) { return j >= 420; }, 420, 1000},
      {"window",
       [](int64_t i, int64_t j) {
         return j > filled + i - window && j <= 500 + i;
       },
       371, 600},
      {"holes",
       [](int64_t i, int64_t j) {
         return j >= 200 && j < 900 && (i + j) % 7 != 0 && i % 5 != 3;
       },
       200, 900},
      {"nothing", [](int64_t, int64_t) { return false; }, 0, 0},
      {"one", [](int64_t, int64_t j) { return j == 999; }, 999, 1000},
  };
  for (const auto &pattern : patterns)
    for (int64_t rows : {1, 6, 100})
      for (int bits : {0, 2, 3, 6}) {
        Case c{GetParam(), rows, columns, 9, 18};
        c.causal = bits & 1;
        c.maskPerRow = bits & 2;
        c.isTransposed = bits & 4;
        Problem p(c);
        SCOPED_TRACE(p.describe() << " " << pattern.name);
        std::fill(p.added.bytes.begin(), p.added.bytes.end(), std::byte(0));
        for (size_t at = 0; at < p.keep.size(); ++at) {
          p.keep[at] = pattern.keeps(at / columns % rows, at % columns);
          if (!p.keep[at])
            p.hide(at);
        }
        auto attend = [&](int32_t mask) {
          std::vector<std::byte> output = p.output.bytes;
          LoneRank run;
          p.args.mask = mask;
          EXPECT_EQ(tprt_attention(&run.rank, &p.args, p.query.bytes.data(),
                                   p.key.bytes.data(), p.value.bytes.data(),
                                   mask == TPRT_ADDED_MASK
                                       ? (const void *)p.added.bytes.data()
                                       : p.keep.data(),
                                   output.data()),
                    TPRT_OK);
          return output;
        };
        std::vector<std::byte> expected = attend(TPRT_ADDED_MASK);
        ASSERT_EQ(attend(TPRT_BOOLEAN_MASK), expected);
        // NaN where nothing may be read: ranges begin at multiples of 64.
        for (Operand *operand : {&p.key, &p.value})
          for (int64_t j = 0; j < columns; ++j)
            if (j < pattern.first / 64 * 64 || j >= pattern.last)
              p.forEachElement(*operand, j, [&](int64_t at) {
                int64_t width = byteWidth(c.dtype);
                std::fill_n(&operand->bytes[at * width], width, std::byte(255));
              });
        ASSERT_EQ(attend(TPRT_BOOLEAN_MASK), expected);
      }
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });

/// Several threads share out heads, and change no bit.
TEST(Attention, ThreadsDontChangeResults) {
  for (Dtype dtype : {Dtype::F32, Dtype::BF16}) {
    Problem p({dtype, 150, 130, 64, 64, /*causal=*/true});
    tprt_attention_gradient_args all = {};
    all.attention = p.args;
    all.query_gradient = p.args.query;
    all.key_gradient = makeStrides(Problem::heads, 130, 64, true);
    all.value_gradient = all.key_gradient;
    size_t perHead = batches * Problem::heads * 130 * 64 * byteWidth(dtype);
    auto compute = [&](int threads) {
      std::vector<std::vector<std::byte>> results = {
          p.output.bytes, p.query.bytes, std::vector<std::byte>(perHead),
          std::vector<std::byte>(perHead)};
      LoneRank run;
      run.rank.gemm.setThreads(threads);
      EXPECT_EQ(tprt_attention(&run.rank, &p.args, p.query.bytes.data(),
                               p.key.bytes.data(), p.value.bytes.data(),
                               nullptr, results[0].data()),
                TPRT_OK);
      EXPECT_EQ(tprt_attention_gradient(
                    &run.rank, &all, p.query.bytes.data(), p.key.bytes.data(),
                    p.value.bytes.data(), nullptr, p.output.bytes.data(),
                    results[1].data(), results[2].data(), results[3].data()),
                TPRT_OK);
      return results;
    };
    auto expected = compute(1);
    EXPECT_EQ(compute(2), expected);
    EXPECT_EQ(compute(3), expected); // the heads of a group are separated
  }
}

/// One head of two rows and columns, one element each.
static std::vector<float> attendTwoRows(std::vector<float> mask) {
  tprt_attention_args args = {};
  args.scale = 1;
  args.rows = args.columns = 2;
  args.depth = args.width = 1;
  std::fill(std::begin(args.batch), std::end(args.batch), 1);
  for (auto *strides : {&args.query, &args.key, &args.value, &args.output})
    strides->row = strides->col = 1;
  args.mask = TPRT_ADDED_MASK;
  args.mask_strides.row = 2;
  args.mask_strides.col = 1;
  std::vector<float> x = {1, 3}, output(2);
  LoneRank run;
  EXPECT_EQ(tprt_attention(&run.rank, &args, x.data(), x.data(), x.data(),
                           mask.data(), output.data()),
            TPRT_OK);
  return output;
}

TEST(Attention, WhatIsMaskedHasNoWeight) {
  float low = -INFINITY;
  std::vector<float> output = attendTwoRows({low, 0, low, low});
  EXPECT_EQ(output[0], 3.0f);
  EXPECT_EQ(output[1], 0.0f) << "a row that sees nothing";
  EXPECT_TRUE(std::isnan(attendTwoRows({0, NAN, 0, 0})[0]));
  EXPECT_TRUE(std::isnan(attendTwoRows({low, NAN, 0, 0})[0]));
  // Hidden by numbers, a row is seen evenly.
  float least = std::numeric_limits<float>::lowest();
  EXPECT_EQ(attendTwoRows({least, least, 0, 0})[0], 2.0f);
}

TEST(Attention, InvalidArguments) {
  auto errorWith = [](auto edit) {
    tprt_attention_args args = {};
    args.rows = args.columns = args.depth = args.width = 1;
    edit(args);
    LoneRank run;
    float data[1] = {};
    EXPECT_EQ(tprt_attention(&run.rank, &args, data, data, data, nullptr, data),
              TPRT_INVALID_ARGUMENT);
    return run.rank.error;
  };
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.dtype = TPRT_I64; }),
                       "dtype is not f32, f64, f16 or bf16"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.mask = 3; }),
                       "the kind of mask is unknown"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.mask = 1; }),
                       "the mask's address and kind don't agree"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.columns = -1; }),
                       "a size is out of range"));
  EXPECT_TRUE(contains(errorWith([](auto &args) { args.batch[3] = -1; }),
                       "a batch size is out of range"));
}
