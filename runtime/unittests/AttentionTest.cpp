//===- AttentionTest.cpp - tprt_attention against the definition ---------===//

#include "Rank.h"
#include "TestUtils.h"

#include <cmath>
#include <random>

using namespace tprt;
using namespace tprt::test;

namespace {

struct NoCommunicator : Communicator {
  int64_t getRank() const override { return 0; }
  int64_t run(int64_t, const std::byte *, std::byte *) override { return 0; }
  void barrier() override {}
  void abort(const std::string &) override {}
  void finish() override {}
};

struct TestRank {
  NoCommunicator communicator;
  Manifest manifest;
  tprt_rank rank{manifest, communicator};
};

/// Values of one dtype, as doubles and as they are stored.
struct Operand {
  Operand(Dtype dtype, int64_t count, std::mt19937 &generator)
      : values(count), bytes(count * byteWidth(dtype)) {
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

static void check(const Case &c) {
  SCOPED_TRACE(testing::Message()
               << toString(c.dtype) << " " << c.rows << "x" << c.columns
               << " of " << c.depth << ", " << c.width << " causal " << c.causal
               << " mask " << c.mask << c.maskPerRow << " transposed "
               << c.isTransposed);
  constexpr int64_t heads = keyHeads * group;
  tprt_attention_args args = {};
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
  args.value = makeStrides(keyHeads, c.columns, c.width, false, c.isTransposed);
  args.output = makeStrides(heads, c.rows, c.width, true);
  args.mask_strides.batch[TPRT_ATTENTION_BATCHES - 3] =
      (c.maskPerRow ? c.rows : 1) * c.columns;
  args.mask_strides.row = c.maskPerRow ? c.columns : 0;
  args.mask_strides.col = 1;

  std::mt19937 generator(11);
  Operand query(c.dtype, batches * heads * c.rows * c.depth, generator);
  Operand key(c.dtype, batches * keyHeads * c.columns * c.depth, generator);
  Operand value(c.dtype, batches * keyHeads * c.columns * c.width, generator);
  Operand added(c.dtype, batches * c.rows * c.columns, generator);
  Operand output(c.dtype, batches * heads * c.rows * c.width, generator);
  std::vector<uint8_t> keep(batches * c.rows * c.columns);
  for (size_t i = 0; i < keep.size(); ++i)
    keep[i] = i % c.columns == 0 || generator() % 3 != 0;

  TestRank run;
  const void *mask = c.mask == TPRT_ADDED_MASK     ? added.bytes.data()
                     : c.mask == TPRT_BOOLEAN_MASK ? (void *)keep.data()
                                                   : nullptr;
  ASSERT_EQ(tprt_attention(&run.rank, &args, query.bytes.data(),
                           key.bytes.data(), value.bytes.data(), mask,
                           output.bytes.data()),
            TPRT_OK)
      << run.rank.error;

  double tolerance = c.dtype == Dtype::F64   ? 1e-13
                     : c.dtype == Dtype::F32 ? 1e-5
                     : c.dtype == Dtype::F16 ? 2e-3
                                             : 2e-2;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < c.rows; ++i) {
        auto at = [&](const tprt_attention_strides &s, int64_t row,
                      int64_t col) {
          const int64_t *strides = s.batch + TPRT_ATTENTION_BATCHES - 3;
          return b * strides[0] + h / group * strides[1] +
                 h % group * strides[2] + row * s.row + col * s.col;
        };
        std::vector<double> weights(c.columns);
        double sum = 0;
        for (int64_t j = 0; j < c.columns; ++j) {
          double score = 0;
          for (int64_t d = 0; d < c.depth; ++d)
            score += query.values[at(args.query, i, d)] *
                     key.values[at(args.key, j, d)];
          score *= args.scale;
          int64_t maskAt = at(args.mask_strides, i, j);
          if (c.mask == TPRT_ADDED_MASK)
            score += added.values[maskAt];
          bool isSeen = !(c.causal && j > i) &&
                        !(c.mask == TPRT_BOOLEAN_MASK && !keep[maskAt]);
          sum += weights[j] = isSeen ? std::exp(score) : 0;
        }
        for (int64_t e = 0; e < c.width; ++e) {
          double expected = 0;
          for (int64_t j = 0; j < c.columns; ++j)
            expected += weights[j] / sum * value.values[at(args.value, j, e)];
          ASSERT_NEAR(
              loadAsDouble(c.dtype, output.bytes.data(), at(args.output, i, e)),
              expected, tolerance)
              << "batch " << b << " head " << h << " row " << i;
        }
      }
}

class AttentionTest : public testing::TestWithParam<Dtype> {};

TEST_P(AttentionTest, MasksAndLayouts) {
  for (int bits = 0; bits < 24; ++bits) {
    Case c{GetParam()};
    c.causal = bits & 1;
    c.maskPerRow = bits & 2;
    c.isTransposed = bits & 4;
    c.mask = bits / 8;
    check(c);
  }
}

/// More rows than a block has, sizes that no tile divides, one of each.
TEST_P(AttentionTest, Sizes) {
  struct {
    int64_t rows, columns, depth, width;
  } sizes[] = {{1, 1, 1, 1},    {1, 70, 16, 33}, {100, 100, 40, 24},
               {49, 97, 32, 8}, {97, 50, 8, 17}, {3, 17, 0, 2}};
  for (auto [rows, columns, depth, width] : sizes)
    for (bool causal : {false, true}) {
      Case c{GetParam(), rows, columns, depth, width, causal};
      check(c);
    }
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });

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
  TestRank run;
  EXPECT_EQ(tprt_attention(&run.rank, &args, x.data(), x.data(), x.data(),
                           mask.data(), output.data()),
            TPRT_OK);
  return output;
}

TEST(Attention, WhatIsMaskedHasNoWeight) {
  float low = -INFINITY;
  std::vector<float> output = attendTwoRows({low, 0, low, low});
  EXPECT_EQ(output[0], 3.0f);
  EXPECT_TRUE(std::isnan(output[1])) << "a row that sees nothing";
  EXPECT_TRUE(std::isnan(attendTwoRows({0, NAN, 0, 0})[0]));
}

TEST(Attention, InvalidArguments) {
  auto errorWith = [](auto edit) {
    tprt_attention_args args = {};
    args.rows = args.columns = args.depth = args.width = 1;
    edit(args);
    TestRank run;
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
