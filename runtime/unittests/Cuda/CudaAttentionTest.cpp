//===- CudaAttentionTest.cpp - Attention on a device, against the host's --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionCase.h"
#include "Fake.h"
#include "cuda/DnnCalls.h"

using namespace tprt;
using namespace tprt::test;

namespace {

class CudaAttentionTest : public testing::TestWithParam<Dtype> {
protected:
  void SetUp() override { fake::reset(); }
};

} // namespace

/// Calls check(case) for masks, layouts and groups.
template <typename Check>
static void forEachCase(Dtype dtype, Check check) {
  for (int32_t mask : {TPRT_NO_MASK, TPRT_ADDED_MASK, TPRT_BOOLEAN_MASK})
    for (int bits = 0; bits < 16; ++bits) {
      AttentionCase c;
      c.dtype = dtype;
      c.mask = mask;
      c.causal = bits & 1;
      c.isHeadMajor = bits & 2;
      c.group = bits & 4 ? 1 : 3;
      c.maskPerRow = c.maskPerHead = bits & 8;
      check(c);
    }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaAttentionTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });

//===----------------------------------------------------------------------===//
// The runtime's own kernels
//===----------------------------------------------------------------------===//

TEST_P(CudaAttentionTest, Own) {
  AttentionRunner runner(AttentionLibrary::Own);
  forEachCase(GetParam(), [&](const AttentionCase &c) {
    runner.checkForward(c);
    runner.checkGradient(c);
  });
  EXPECT_EQ(fake::countCalls("cudnn"), 0u);
  std::string dtype(toString(GetParam()));
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_attention_tiles_" + dtype +
                             "_64 grid 12 "),
            24u);
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_attention_tiles_" + dtype),
            48u);
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_attention_query_gradient_" +
                             dtype + " grid 108 block 128"),
            24u);
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_attention_key_gradient_" +
                             dtype + " grid 192 block 128"),
            24u);
  EXPECT_EQ(runner.getUse().library, "own");
  EXPECT_EQ(runner.getUse().reason, "asked for");
}

TEST_P(CudaAttentionTest, OwnOfOddAndEmptySizes) {
  AttentionRunner runner(AttentionLibrary::Own);
  struct {
    int64_t rows, columns, depth, width;
  } sizes[] = {{1, 1, 1, 1},     {7, 5, 3, 6},       {5, 7, 6, 3},
               {0, 5, 3, 2},     {5, 0, 3, 2},       {5, 7, 0, 3},
               {5, 7, 3, 0},     {130, 150, 3, 2},   {2, 140, 135, 140},
               {70, 65, 9, 127}, {33, 129, 128, 65}, {64, 64, 64, 64}};
  for (auto [rows, columns, depth, width] : sizes)
    for (bool causal : {false, true}) {
      AttentionCase c{GetParam(), rows, columns, depth, width, causal};
      c.keyHeads = 1;
      runner.checkForward(c);
      runner.checkGradient(c);
    }
}

TEST_P(CudaAttentionTest, OwnOfRowsHiddenByNumbers) {
  AttentionRunner runner(AttentionLibrary::Own);
  AttentionCase c{GetParam()};
  c.mask = TPRT_ADDED_MASK;
  c.hidesByNumbers = true;
  runner.checkForward(c);
  runner.checkGradient(c);
}

TEST_P(CudaAttentionTest, NamesLimits) {
  AttentionRunner runner;
  AttentionCase c{GetParam()};
  c.depth = 1025;
  tprt_attention_gradient_args args = c.makeArgs();
  auto forward = [&] {
    runner.getStream().attention(args.attention, nullptr, nullptr, nullptr,
                                 nullptr, nullptr);
  };
  auto backward = [&] {
    runner.getStream().attentionGradient(args, nullptr, nullptr, nullptr,
                                         nullptr, nullptr, nullptr, nullptr,
                                         nullptr);
  };
  std::string limit = "tprt_attention: heads of 1025 elements aren't supported "
                      "on CUDA devices, the limit is 1024";
  EXPECT_EQ(errorOf(forward), limit);
  EXPECT_EQ(errorOf(backward), limit);
  args.attention.dtype = TPRT_I32;
  EXPECT_EQ(errorOf(forward),
            "tprt_attention: dtype is not f32, f64, f16 or bf16");
  EXPECT_EQ(errorOf(backward),
            "tprt_attention: dtype is not f32, f64, f16 or bf16");
}

//===----------------------------------------------------------------------===//
// cuDNN
//===----------------------------------------------------------------------===//

static bool isHalf(Dtype dtype) { return byteWidth(dtype) == 2; }

/// What cuDNN has it computes, and nothing else does; the rest is said to be
/// computed otherwise.
TEST_P(CudaAttentionTest, CuDnnWhereItHasTheCase) {
  AttentionRunner runner;
  forEachCase(GetParam(), [&](const AttentionCase &c) {
    bool isDnn = isHalf(c.dtype);
    std::string reason = isDnn ? "" : "it is neither f16 nor bf16";
    for (bool isGradient : {false, true}) {
      fake::reset();
      isGradient ? runner.checkGradient(c) : runner.checkForward(c);
      AttentionUse use = runner.getUse();
      EXPECT_EQ(use.op, isGradient ? "attention_gradient" : "attention");
      EXPECT_EQ(use.library, isDnn ? "cuDNN 9.19.0" : "own");
      EXPECT_EQ(use.reason, reason);
      EXPECT_EQ(use.calls, 1);
      // Of the gradient, forward and backward for each head of a group.
      size_t calls = !isDnn       ? 0
                     : isGradient ? 2 * static_cast<size_t>(c.group)
                                  : 1;
      EXPECT_EQ(fake::countCalls("cudnnBackendExecute engine 1"), calls);
      EXPECT_EQ(fake::countCalls("cudnnBackendExecute"), calls);
      // A kernel of the runtime's own writes the rows of which a mask hides
      // all.
      std::string hidden = "cuLaunchKernel tprt_attention_hidden_rows_" +
                           std::string(toString(c.dtype));
      bool hasMask = isDnn && c.mask != TPRT_NO_MASK;
      size_t mended =
          hasMask ? static_cast<size_t>(isGradient ? c.group : 1) : 0;
      EXPECT_EQ(fake::countCalls(hidden), mended);
      // Another one makes an added mask of a boolean one: two rows, or those
      // of each head.
      std::string added =
          "cuLaunchKernel tprt_attention_added_mask_" +
          std::string(toString(c.dtype)) + " grid " +
          std::to_string(c.maskPerRow ? 2 * 2 * c.group * c.rows : 2) + " ";
      bool isMade = isDnn && c.mask == TPRT_BOOLEAN_MASK;
      EXPECT_EQ(fake::countCalls(added), isMade ? 1u : 0u);
      EXPECT_EQ(fake::countCalls("cuLaunchKernel") == mended + isMade, isDnn);
    }
  });
}

TEST(CudaAttention, SaysWhatItIs) {
  fake::reset();
  AttentionRunner runner;
  AttentionCase c;
  c.causal = true;
  c.mask = TPRT_ADDED_MASK;
  runner.checkForward(c);
  EXPECT_EQ(runner.getUse().form, "bf16, 8 heads, 9 rows, 16 columns, depth 8, "
                                  "width 16, causal, added mask");
}

/// What is asked for is computed, or refused with the reason.
TEST(CudaAttention, CuDnnOrAnError) {
  fake::reset();
  AttentionRunner runner(AttentionLibrary::CuDnn);
  runner.checkForward({});
  AttentionCase c{Dtype::F32};
  tprt_attention_gradient_args args = c.makeArgs();
  EXPECT_EQ(errorOf([&] {
              runner.getStream().attention(args.attention, nullptr, nullptr,
                                           nullptr, nullptr, nullptr);
            }),
            "cuDNN is asked for, but doesn't compute this attention (f32, 8 "
            "heads, 9 rows, 16 columns, depth 8, width 16): it is neither f16 "
            "nor bf16");
  EXPECT_EQ(fake::countCalls("cuLaunchKernel"), 0u);
  // What has failed leaves nothing behind.
  EXPECT_EQ(runner.getStream().getAttentionUses().size(), 1u);
  runner.checkForward({});
}

static std::string getReason(const AttentionCase &c, int64_t offset = 0) {
  AttentionRunner runner;
  runner.offset = offset;
  runner.checkGradient(c);
  EXPECT_EQ(runner.getUse().library, "own");
  std::string reason = runner.getUse().reason;
  runner.checkForward(c);
  EXPECT_EQ(runner.getUse().library, "own");
  return reason;
}

TEST(CudaAttention, WhatCuDnnDoesNotHave) {
  fake::reset();
  EXPECT_EQ(getReason({.depth = 12}),
            "the sizes of heads aren't multiples of 8");
  EXPECT_EQ(getReason({.columns = 12, .mask = TPRT_ADDED_MASK}),
            "the rows of the mask aren't aligned to 16 bytes");
  EXPECT_EQ(getReason({.rows = 0}), "there is nothing to compute");
  EXPECT_EQ(getReason({}, /*offset=*/1),
            "an operand isn't aligned to 16 bytes");
  EXPECT_EQ(getReason({.width = 136}),
            "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED (the head's size "
            "isn't supported)");
}

/// Strides that no test above has: key and value by columns, the key of one
/// sequence for both.
TEST(CudaAttention, LayoutsThatCuDnnDoesNotHave) {
  fake::reset();
  AttentionRunner runner;
  auto getReason = [&](auto edit) {
    tprt_attention_args args = AttentionCase{}.makeArgs().attention;
    edit(args);
    auto memory = runner.device->allocate(1 << 16);
    DeviceStream &stream = runner.getStream();
    stream.beginRun();
    stream.attention(args, memory.get(), memory.get(), memory.get(), nullptr,
                     memory.get() + (1 << 15));
    stream.endRun();
    stream.finish([](auto) {});
    return runner.getUse().reason;
  };
  EXPECT_EQ(
      getReason([](auto &args) { std::swap(args.key.row, args.key.col); }),
      "the elements of a row of the key don't lie side by side");
  EXPECT_EQ(getReason([](auto &args) { args.value.batch[5] = 0; }),
            "the value is shared, not only by heads");
  EXPECT_EQ(getReason([](auto &args) { args.query.row += 1; }),
            "the rows of the query aren't aligned to 16 bytes");
}

/// Loops over batches that are one, that share keys, and that are neither.
TEST(CudaAttention, LoopsAsCalls) {
  tprt_attention_args args = AttentionCase{}.makeArgs().attention;
  auto map = [&] {
    return cuda::toDnnCalls(args, {{cuda::DnnQuery, &args.query},
                                   {cuda::DnnKey, &args.key},
                                   {cuda::DnnValue, &args.value},
                                   {cuda::DnnOutput, &args.output}});
  };
  using Sizes = std::array<int64_t, 4>;
  auto expectSizes = [](const cuda::DnnCalls &calls, Sizes query, Sizes key) {
    EXPECT_EQ(calls.attention.operands.at(cuda::DnnQuery).sizes, query);
    EXPECT_EQ(calls.attention.operands.at(cuda::DnnKey).sizes, key);
  };
  // Two keys for two heads each.
  expectSizes(map(), {2, 4, 9, 8}, {2, 2, 16, 8});
  EXPECT_EQ(map().offsets.size(), 1u);

  // Sequences in a loop that continues the other one.
  auto operands = {&args.query, &args.key, &args.value, &args.output};
  args.batch[4] = 3;
  for (tprt_attention_strides *strides : operands)
    strides->batch[4] = 2 * strides->batch[5];
  expectSizes(map(), {6, 4, 9, 8}, {6, 2, 16, 8});
  EXPECT_EQ(map().offsets.size(), 1u);

  // In one that doesn't: a call each.
  args.query.batch[4] += 64;
  cuda::DnnCalls calls = map();
  expectSizes(calls, {2, 4, 9, 8}, {2, 2, 16, 8});
  ASSERT_EQ(calls.offsets.size(), 3u);
  EXPECT_EQ(calls.offsets[2].at(cuda::DnnQuery), 2 * args.query.batch[4]);
  EXPECT_EQ(calls.offsets[2].at(cuda::DnnKey), 2 * args.key.batch[4]);

  // Heads of a group that lie elsewhere than those of the next one: a key's
  // heads are all heads, and keys are the batch.
  args = AttentionCase{}.makeArgs().attention;
  args.query.batch[6] += 8;
  calls = map();
  expectSizes(calls, {2, 2, 9, 8}, {2, 1, 16, 8});
  EXPECT_EQ(calls.offsets.size(), 2u);
}

/// What cuDNN gets of a boolean mask: its columns aligned, nothing expanded.
TEST(CudaAttention, BooleanMaskAsAddedOne) {
  AttentionCase c{.columns = 13, .mask = TPRT_BOOLEAN_MASK};
  tprt_attention_args args = c.makeArgs().attention;
  auto check = [&](int64_t row, int64_t sequence, int64_t key, int64_t head) {
    cuda::AddedMask mask = cuda::layOutAddedMask(args);
    const tprt_attention_strides &strides = mask.strides;
    EXPECT_EQ(strides.col, 1);
    EXPECT_EQ(strides.row, row);
    EXPECT_EQ(strides.batch[5], sequence);
    EXPECT_EQ(strides.batch[6], key);
    EXPECT_EQ(strides.batch[7], head);
  };
  check(16, 9 * 16, 0, 0);
  c.maskPerHead = true;
  args = c.makeArgs().attention;
  check(16, 4 * 9 * 16, 2 * 9 * 16, 9 * 16);
  c.maskPerRow = false;
  args = c.makeArgs().attention;
  check(0, 4 * 16, 2 * 16, 16);

  fake::reset();
  AttentionRunner runner;
  for (bool perHead : {false, true}) {
    c.maskPerHead = c.maskPerRow = perHead;
    runner.checkForward(c);
    runner.checkGradient(c);
    EXPECT_EQ(runner.getUse().library, "cuDNN 9.19.0");
  }
}

/// cuDNN's gradient takes two bytes for each score: not of all heads at once.
TEST(CudaAttention, GradientOfManyScores) {
  AttentionCase c{.rows = 8192, .columns = 16384, .depth = 64, .width = 64};
  c.group = 1;
  c.keyHeads = 12; // and two sequences; 256 MiB each
  tprt_attention_gradient_args all = c.makeArgs();
  const tprt_attention_args &args = all.attention;
  auto map = [&] {
    return cuda::toDnnCalls(args,
                            {{cuda::DnnQuery, &args.query},
                             {cuda::DnnKey, &args.key},
                             {cuda::DnnValue, &args.value},
                             {cuda::DnnGradient, &args.output},
                             {cuda::DnnQueryGradient, &all.query_gradient},
                             {cuda::DnnKeyGradient, &all.key_gradient},
                             {cuda::DnnValueGradient, &all.value_gradient}});
  };
  using Sizes = std::array<int64_t, 4>;
  cuda::DnnCalls calls = map();
  EXPECT_EQ(calls.attention.operands.at(cuda::DnnQuery).sizes,
            (Sizes{1, 4, 8192, 64}));
  EXPECT_EQ(calls.attention.operands.at(cuda::DnnKeyGradient).sizes,
            (Sizes{1, 4, 16384, 64}));
  ASSERT_EQ(calls.offsets.size(), 6u);
  EXPECT_EQ(calls.offsets[5].at(cuda::DnnKey),
            args.key.batch[5] + 8 * args.key.batch[6]);
  // As many sequences as fit, if all heads of one do.
  c.keyHeads = 2;
  all = c.makeArgs();
  all.attention.batch[4] = 6;
  for (tprt_attention_strides *strides :
       {&all.attention.query, &all.attention.key, &all.attention.value,
        &all.attention.output, &all.query_gradient, &all.key_gradient,
        &all.value_gradient})
    strides->batch[4] = 2 * strides->batch[5];
  calls = map();
  EXPECT_EQ(calls.attention.operands.at(cuda::DnnQuery).sizes,
            (Sizes{2, 2, 8192, 64}));
  EXPECT_EQ(calls.attention.operands.at(cuda::DnnStatistics).sizes,
            (Sizes{2, 2, 8192, 1}));
  ASSERT_EQ(calls.offsets.size(), 6u);
  EXPECT_EQ(calls.offsets[5].at(cuda::DnnKey), 10 * args.key.batch[5]);
  // A head with more than the limit is a call of its own.
  c.keyHeads = 12;
  all = c.makeArgs();
  all.attention.columns *= 8;
  calls = map();
  EXPECT_EQ(calls.attention.operands.at(cuda::DnnQuery).sizes,
            (Sizes{1, 1, 8192, 64}));
  EXPECT_EQ(calls.offsets.size(), 24u);
}

/// Whatever the stride of a dimension of size 1 is, cuDNN gets a dense one.
TEST(CudaAttention, StridesOfSizeOne) {
  AttentionCase c{.rows = 9, .columns = 16, .depth = 8, .width = 16};
  c.group = c.keyHeads = 1;
  tprt_attention_args args = c.makeArgs().attention;
  args.batch[5] = 1;
  tprt_attention_strides mask = {};
  mask.col = 1;
  cuda::DnnCalls calls =
      cuda::toDnnCalls(args, {{cuda::DnnQuery, &args.query},
                              {cuda::DnnKey, &args.key},
                              {cuda::DnnValue, &args.value},
                              {cuda::DnnMask, &mask},
                              {cuda::DnnOutput, &args.output}});
  using Sizes = std::array<int64_t, 4>;
  auto &operands = calls.attention.operands;
  EXPECT_EQ(operands.at(cuda::DnnQuery).strides, (Sizes{72, 72, 8, 1}));
  EXPECT_EQ(operands.at(cuda::DnnMask).sizes, (Sizes{1, 1, 1, 16}));
  EXPECT_EQ(operands.at(cuda::DnnMask).strides, (Sizes{16, 16, 16, 1}));
}

/// Plans and memory are of the first run.
TEST(CudaAttention, PlansOncePerForm) {
  fake::reset();
  AttentionRunner runner;
  for (int repeat = 0; repeat < 3; ++repeat) {
    runner.checkForward({});
    runner.checkGradient({});
    EXPECT_EQ(fake::countCalls("cudnnCreate"), 1u);
    EXPECT_EQ(fake::countCalls("cudnnSetStream"), 1u);
    // One of attention, two of its gradient.
    EXPECT_EQ(fake::countCalls("cudnnBackendFinalize 15"), 3u);
    EXPECT_EQ(fake::countCalls("cudnnBackendFinalize 5"), 3u);
  }
  runner.checkForward({.causal = true});
  EXPECT_EQ(fake::countCalls("cudnnBackendFinalize 15"), 4u);
}

TEST(CudaAttention, IsCaptured) {
  fake::reset();
  AttentionRunner runner;
  AttentionCase c;
  tprt_attention_gradient_args args = c.makeArgs();
  auto memory = runner.device->allocate(1 << 16);
  DeviceStream &stream = runner.getStream();
  std::byte *output = memory.get() + (1 << 15);
  auto run = [&] {
    stream.beginRun();
    stream.attention(args.attention, memory.get(), memory.get(), memory.get(),
                     nullptr, output);
    stream.endRun();
  };
  runner.device->fill(Dtype::BF16, 0.5, memory.get(), 1 << 14);
  run();
  stream.finish([](auto) {});
  size_t allocations = fake::countCalls("cuMemAlloc");
  stream.beginCapture();
  run();
  std::shared_ptr<void> captured = stream.endCapture();
  EXPECT_EQ(fake::countCalls("cuMemAlloc"), allocations);
  runner.device->fill(Dtype::BF16, 0.25, memory.get(), 1 << 14);
  stream.replay(captured.get());
  stream.finish([](auto) {});
  std::byte value[2];
  runner.device->read(output, Dtype::BF16, {1}, makeBox({0}, {1}), value);
  EXPECT_EQ(loadAsDouble(Dtype::BF16, value, 0), 0.25);
}

/// A call that fails is an error, whoever was to be asked.
TEST(CudaAttention, NamesWhatFails) {
  fake::reset();
  AttentionRunner runner;
  runner.checkForward({});
  tprt_attention_args args = AttentionCase{}.makeArgs().attention;
  auto memory = runner.device->allocate(1 << 16);
  auto call = [&] {
    runner.getStream().attention(args, memory.get(), memory.get(), memory.get(),
                                 nullptr, memory.get() + (1 << 15));
  };
  fake::failCall("cudnnBackendExecute", 5000);
  EXPECT_EQ(errorOf(call), "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED "
                           "(as the test wants it)");
  fake::reset();
}

TEST(CudaAttention, DropsOutgrownWorkspaces) {
  fake::reset();
  AttentionCase small{.rows = 3}, large{.rows = 40};
  auto allocateFor = [](const std::vector<AttentionCase> &cases) {
    AttentionRunner runner(AttentionLibrary::Own);
    for (const AttentionCase &c : cases)
      runner.checkGradient(c);
    return fake::getAllocatedBytes();
  };
  EXPECT_EQ(allocateFor({small, large}), allocateFor({large}));
}

TEST(CudaAttention, CuDnnThatDoesNotBegin) {
  fake::reset();
  fake::failCall("cudnnCreate", 5000);
  AttentionRunner runner;
  runner.checkForward({});
  EXPECT_EQ(runner.getUse().library, "own");
  EXPECT_EQ(
      runner.getUse().reason,
      "cudnnCreate: CUDNN_STATUS_EXECUTION_FAILED (as the test wants it)");
}

TEST(CudaAttention, OldCuDnn) {
  fake::reset();
  fake::getSettings().dnnVersion = 91002;
  EXPECT_TRUE(
      contains(errorOf([] { cuda::Dnn(); }),
               "cuDNN has version 9.10, version 9.11 or newer is needed"));
  fake::getSettings().dnnVersion = 91100;
  EXPECT_EQ(cuda::Dnn().getVersion(), "9.11.0");
  fake::reset();
}
