//===- ConvolutionTest.cpp - Convolutions ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Convolution.h"
#include "TestUtils.h"

#include <cmath>
#include <random>

using namespace tprt;
using namespace tprt::test;

static int64_t multiply(const int64_t (&sizes)[3]) {
  return sizes[0] * sizes[1] * sizes[2];
}

namespace {
/// The operands of a convolution; the optional ones may be empty.
struct Operands {
  explicit Operands(const tprt_convolution_args &args, bool hasScale = false,
                    bool hasBias = false, bool hasAddend = false) {
    int64_t channels = args.groups * args.out_channels;
    numOutputs = args.batch * channels * multiply(args.count);
    input = makeFloats(
        args.batch * args.groups * args.in_channels * multiply(args.size), 1);
    weight = makeFloats(channels * args.in_channels * multiply(args.window), 2);
    if (hasScale)
      scale = makeFloats(channels, 5);
    if (hasBias)
      bias = makeFloats(channels, 3);
    if (hasAddend)
      addend = makeFloats(numOutputs, 4);
  }

  std::vector<float> input, weight, scale, bias, addend;
  int64_t numOutputs;
};
} // namespace

/// By the definition, in f64.
static std::vector<double> getExpected(const tprt_convolution_args &args,
                                       const Operands &operands) {
  std::vector<double> output;
  const int64_t *counts = args.count, *sizes = args.size;
  for (int64_t b = 0; b < args.batch; ++b)
    for (int64_t m = 0; m < args.groups * args.out_channels; ++m)
      for (int64_t p = 0; p < multiply(args.count); ++p) {
        int64_t position[3] = {p / (counts[1] * counts[2]),
                               p / counts[2] % counts[1], p % counts[2]};
        double sum = 0;
        for (int64_t c = 0; c < args.in_channels; ++c)
          for (int64_t k = 0; k < multiply(args.window); ++k) {
            int64_t element[3] = {k / (args.window[1] * args.window[2]),
                                  k / args.window[2] % args.window[1],
                                  k % args.window[2]};
            int64_t index =
                (b * args.groups + m / args.out_channels) * args.in_channels +
                c;
            bool isInside = true;
            for (int d = 0; d < 3; ++d) {
              int64_t at = position[d] * args.stride[d] +
                           element[d] * args.dilation[d] - args.padding[d];
              isInside &= at >= 0 && at < sizes[d];
              index = index * sizes[d] + at;
            }
            if (isInside)
              sum += double(operands.input[index]) *
                     operands.weight[(m * args.in_channels + c) *
                                         multiply(args.window) +
                                     k];
          }
        if (!operands.scale.empty())
          sum *= operands.scale[m];
        if (!operands.bias.empty())
          sum += operands.bias[m];
        if (!operands.addend.empty())
          sum += operands.addend[output.size()];
        output.push_back(args.activation == TPRT_RELU ? std::max(sum, 0.0)
                                                      : sum);
      }
  return output;
}

template <typename T>
static std::vector<T> castTo(const std::vector<float> &values) {
  std::vector<T> result;
  for (float value : values)
    result.push_back(castElement<T>(value));
  return result;
}

/// The result as f64, of operands that are T.
template <typename T>
static std::vector<double> compute(const tprt_convolution_args &args,
                                   const Operands &operands,
                                   int64_t numThreads) {
  auto input = castTo<T>(operands.input), weight = castTo<T>(operands.weight),
       scale = castTo<T>(operands.scale), bias = castTo<T>(operands.bias),
       addend = castTo<T>(operands.addend);
  std::vector<T> output(operands.numOutputs, castElement<T>(99.0f));
  GemmState state;
  state.setThreads(numThreads);
  convolution(args,
              {input.data(), weight.data(),
               scale.empty() ? nullptr : scale.data(),
               bias.empty() ? nullptr : bias.data(),
               addend.empty() ? nullptr : addend.data(), output.data()},
              state);
  std::vector<double> result;
  for (T value : output)
    result.push_back(castElement<float>(value));
  return result;
}

static void expectNear(const std::vector<double> &found,
                       const std::vector<double> &expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i],
                tolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i;
}

static void check(const tprt_convolution_args &given, bool hasScale,
                  bool hasBias, bool hasAddend, int64_t numThreads) {
  Operands operands(given, hasScale, hasBias, hasAddend);
  tprt_convolution_args args = given;
  std::vector<double> expected = getExpected(args, operands);
  args.dtype = TPRT_F32;
  expectNear(compute<float>(args, operands, numThreads), expected, 1e-4);
  args.dtype = TPRT_F64;
  expectNear(compute<double>(args, operands, numThreads), expected, 1e-6);

  Operands rounded = operands;
  for (std::vector<float> *values :
       {&rounded.input, &rounded.weight, &rounded.scale, &rounded.bias,
        &rounded.addend})
    for (float &value : *values)
      value = castElement<float>(castElement<BFloat16>(value));
  args.dtype = TPRT_BF16;
  expectNear(compute<BFloat16>(args, rounded, numThreads),
             getExpected(args, rounded), 1.0 / 256);
}

/// 56 x 56 images and a window of 3 x 3.
static tprt_convolution_args getImages(int64_t batch, int64_t channels,
                                       int64_t size) {
  return {.dtype = TPRT_F32,
          .activation = TPRT_NO_ACTIVATION,
          .batch = batch,
          .groups = 1,
          .in_channels = channels,
          .out_channels = channels,
          .size = {1, size, size},
          .window = {1, 3, 3},
          .count = {1, size, size},
          .stride = {1, 1, 1},
          .padding = {0, 1, 1},
          .dilation = {1, 1, 1}};
}

TEST(ConvolutionTest, FollowsItsDefinition) {
  std::mt19937 random(1);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 300; ++trial) {
    tprt_convolution_args args = {};
    args.activation = draw(0, 2) == 0 ? TPRT_RELU : TPRT_NO_ACTIVATION;
    args.batch = draw(0, 4);
    args.groups = draw(1, 3);
    args.in_channels = draw(0, 5);
    args.out_channels = draw(1, 14);
    int64_t numDims = draw(1, 3);
    bool isPointwise = draw(0, 3) == 0;
    for (int d = 0; d < 3; ++d) {
      bool isUsed = d >= 3 - numDims;
      args.size[d] = isUsed ? draw(1, numDims == 1 ? 90 : 9) : 1;
      args.window[d] = isUsed && !isPointwise ? draw(1, 4) : 1;
      args.stride[d] = isUsed && draw(0, 1) ? draw(1, 3) : 1;
      args.padding[d] = isUsed && draw(0, 1) ? draw(0, 4) : 0;
      args.dilation[d] = isUsed ? draw(1, 3) : 1;
      // Also fewer windows than there could be, and windows that reach beyond
      // the end.
      args.count[d] =
          isUsed ? std::max<int64_t>(
                       args.size[d] / args.stride[d] + draw(-2, 2), draw(0, 1))
                 : 1;
      if (isPointwise && draw(0, 1)) {
        args.stride[d] = 1;
        args.padding[d] = 0;
        args.count[d] = args.size[d];
      }
    }
    SCOPED_TRACE("trial " + std::to_string(trial));
    check(args, draw(0, 1), draw(0, 1), draw(0, 1), draw(1, 3));
    if (HasFatalFailure())
      return;
  }
}

// Blocks of several images, several blocks of an image, and sums in several
// parts.
TEST(ConvolutionTest, ComputesBlocksOfAnySize) {
  for (auto [batch, channels, size] :
       {std::array<int64_t, 3>{4, 16, 7}, {5, 48, 14}, {2, 3, 70}}) {
    tprt_convolution_args args = getImages(batch, channels, size);
    args.activation = TPRT_RELU;
    for (bool hasScale : {false, true}) {
      check(args, hasScale, true, true, 1);
      check(args, hasScale, true, false, 2);
    }
  }
}

// Training and evaluation may use other numbers of threads, and batches of
// other sizes.
TEST(ConvolutionTest, ResultsDependOnNeitherThreadsNorBatch) {
  tprt_convolution_args args = getImages(6, 24, 14);
  Operands operands(args, /*hasScale=*/true, /*hasBias=*/true);
  std::vector<double> expected = compute<float>(args, operands, 1);
  EXPECT_EQ(compute<float>(args, operands, 3), expected);
  args.batch = 1;
  operands.numOutputs /= 6;
  expected.resize(operands.numOutputs);
  EXPECT_EQ(compute<float>(args, operands, 1), expected);
}

TEST(ConvolutionTest, TheAddendMayBeTheOutput) {
  for (int64_t size : {7, 16}) {
    tprt_convolution_args args = getImages(3, 5, size);
    Operands operands(args, /*hasScale=*/false, /*hasBias=*/false,
                      /*hasAddend=*/true);
    std::vector<double> expected = getExpected(args, operands);
    std::vector<float> output = operands.addend;
    GemmState state;
    convolution(args,
                {operands.input.data(), operands.weight.data(), nullptr,
                 nullptr, output.data(), output.data()},
                state);
    expectNear({output.begin(), output.end()}, expected, 1e-4);
  }
}

TEST(ConvolutionTest, RefusesBadArguments) {
  auto expectError = [](const tprt_convolution_args &args,
                        const std::string &what) {
    GemmState state;
    try {
      convolution(args, {}, state);
      FAIL();
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos)
          << error.what();
    }
  };
  tprt_convolution_args args = getImages(1, 2, 4);
  args.dtype = TPRT_I64;
  expectError(args, "dtype is not f32, f64, f16 or bf16");
  args = getImages(1, 2, 4);
  args.stride[2] = 0;
  expectError(args, "a step is out of range");
  args = getImages(1, 2, 4);
  args.padding[1] = -1;
  expectError(args, "a size is out of range");
  args = getImages(1, 2, 4);
  args.activation = 17;
  expectError(args, "the activation is unknown");
}
