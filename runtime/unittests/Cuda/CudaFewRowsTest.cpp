//===- CudaFewRowsTest.cpp - Attention of few rows on a device ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionCase.h"
#include "Fake.h"

using namespace tprt;
using namespace tprt::test;

namespace {

class CudaFewRowsTest : public testing::TestWithParam<Dtype> {
protected:
  void SetUp() override { fake::reset(); }
};

} // namespace

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaFewRowsTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });

/// The kernel of the last check, with its grid; empty if it was another one.
static std::string getDecodeKernel() {
  std::string last;
  for (const std::string &call : fake::getCalls())
    if (call.starts_with("cuLaunchKernel "))
      last = call.substr(15, call.find(" block") - 15);
  return last.starts_with("tprt_decode_") ? last : "";
}

TEST_P(CudaFewRowsTest, AsOnTheHost) {
  bool hasKernel = GetParam() != Dtype::F64;
  AttentionRunner runner(AttentionLibrary::Own);
  std::mt19937 generator(1);
  auto draw = [&](std::initializer_list<int64_t> values) {
    return values.begin()[generator() % values.size()];
  };
  for (int repeat = 0; repeat < 60; ++repeat) {
    AttentionCase c{GetParam()};
    c.rows = draw({1, 1, 2, 3, 8});
    c.columns = draw({1, 7, 33, 150, 300, 1000});
    c.depth = draw({8, 16, 64, 104, 128});
    c.width = draw({8, 64, 128});
    c.causal = generator() % 4 == 0;
    c.mask = static_cast<int32_t>(
        draw({TPRT_NO_MASK, TPRT_ADDED_MASK, TPRT_BOOLEAN_MASK}));
    c.maskPerRow = generator() % 2;
    c.maskPerHead = generator() % 2;
    c.hidesByNumbers = generator() % 4 == 0;
    c.keyHeads = draw({1, 2, 3});
    c.group = draw({1, 2, 4, 5});
    c.isHeadMajor = generator() % 2;
    runner.checkForward(c);
    EXPECT_EQ(runner.getUse().library, "own");
    EXPECT_EQ(getDecodeKernel() != "", hasKernel);
  }
}

TEST(CudaFewRows, SplitsTheColumns) {
  fake::reset();
  AttentionRunner runner(AttentionLibrary::Own);
  auto getKernel = [&](const AttentionCase &c) {
    runner.checkForward(c);
    return getDecodeKernel();
  };
  AttentionCase c{Dtype::BF16, /*rows=*/1, /*columns=*/700, 128, 128};
  c.group = 4;
  // Of each of four keys as many splits as have 64 columns, one step.
  EXPECT_EQ(getKernel(c), "tprt_decode_bf16_16_4_4 grid 44");
  // No more blocks than run at once.
  fake::getSettings().processors = 8;
  AttentionRunner small(AttentionLibrary::Own);
  small.checkForward(c);
  EXPECT_EQ(getDecodeKernel(), "tprt_decode_bf16_16_4_4 grid 8");
  // Fewer stages where a block has less shared memory.
  for (auto [kibibytes, kernel] :
       {std::pair(130, "tprt_decode_bf16_16_4_4 grid 8"),
        {99, "tprt_decode_bf16_16_4_3 grid 8"},
        {97, ""}}) {
    fake::getSettings().sharedBytes = kibibytes << 10;
    AttentionRunner other(AttentionLibrary::Own);
    other.checkForward(c);
    EXPECT_EQ(getDecodeKernel(), kernel);
  }
  fake::reset();
  c.group = 5; // more queries than four
  EXPECT_EQ(getKernel(c), "tprt_decode_bf16_16_8_4 grid 88");
  c.rows = 3; // two tiles of queries
  EXPECT_EQ(getKernel(c), "tprt_decode_bf16_16_8_4 grid 128");
  c.depth = 256;
  EXPECT_EQ(getKernel(c), "tprt_decode_bf16_32_8_4 grid 128");
  c.depth = c.width = 64;
  EXPECT_EQ(getKernel(c), "tprt_decode_bf16_8_8_4 grid 128");
  c.dtype = Dtype::F32;
  EXPECT_EQ(getKernel(c), "tprt_decode_f32_16_8_4 grid 128");
  c.columns = 3;
  EXPECT_EQ(getKernel(c), "tprt_decode_f32_16_8_4 grid 8");

  // Other kernels.
  c.rows = 9;
  EXPECT_EQ(getKernel(c), "");
  c = {Dtype::BF16, 1, 16, 12, 16};
  EXPECT_EQ(getKernel(c), "");
  c = {Dtype::F32, 1, 16, 132, 16};
  EXPECT_EQ(getKernel(c), "");
}

TEST(CudaFewRows, ChoosesTheLibrary) {
  fake::reset();
  auto check = [](const AttentionCase &c, const std::string &library,
                  const std::string &reason) {
    AttentionRunner runner;
    runner.checkForward(c);
    EXPECT_EQ(runner.getUse().library, library);
    EXPECT_EQ(runner.getUse().reason, reason);
    EXPECT_EQ(getDecodeKernel() != "", library == "own");
  };
  AttentionCase c{Dtype::BF16, /*rows=*/1, /*columns=*/70, 64, 64};
  check(c, "cuDNN 9.19.0", "");
  for (int32_t mask : {TPRT_ADDED_MASK, TPRT_BOOLEAN_MASK}) {
    c.mask = mask;
    check(c, "own", "few rows with a mask");
  }
  c.mask = TPRT_NO_MASK;
  c.dtype = Dtype::F32;
  check(c, "own", "it is neither f16 nor bf16");
}

/// The counters of the blocks that are done are 0 again, also in a replay.
TEST(CudaFewRows, RunsAgain) {
  fake::reset();
  AttentionRunner runner(AttentionLibrary::Own);
  AttentionCase c{Dtype::F16, 1, 800, 64, 64};
  for (int repeat = 0; repeat < 3; ++repeat)
    runner.checkForward(c);
  EXPECT_EQ(fake::countCalls("cuMemsetD8Async"), 1u);

  tprt_attention_args args = c.makeArgs().attention;
  int64_t count = 2 * 800 * 2 * 64; // of the keys
  auto memory = runner.device->allocate(2 * count);
  auto output = runner.device->allocate(2 * 8 * 64);
  DeviceStream &stream = runner.getStream();
  stream.beginCapture();
  stream.beginRun();
  stream.attention(args, memory.get(), memory.get(), memory.get(), nullptr,
                   output.get());
  stream.endRun();
  std::shared_ptr<void> captured = stream.endCapture();
  EXPECT_EQ(fake::countCalls("cuMemsetD8Async"), 1u);
  for (double value : {0.5, 0.25, 2.0}) {
    runner.device->fill(Dtype::F16, value, memory.get(), count);
    stream.replay(captured.get());
    stream.finish([](auto) {});
    std::byte read[2 * 8 * 64];
    runner.device->read(output.get(), Dtype::F16, {8 * 64},
                        makeBox({0}, {8 * 64}), read);
    for (size_t i = 0; i < 8 * 64; ++i)
      ASSERT_EQ(loadAsDouble(Dtype::F16, read, i), value);
  }
}
