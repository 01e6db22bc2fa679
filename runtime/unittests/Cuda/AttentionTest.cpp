//===- AttentionTest.cpp - tprt_attention on a device --------------------===//

#include "Cuda/CudaDevice.h"

#include "Fake.h"
#include "LoneRank.h"
#include "TestUtils.h"

#include <random>

using namespace tprt;
using namespace tprt::test;

namespace {

class CudaAttentionTest : public testing::TestWithParam<Dtype> {
protected:
  void SetUp() override { fake::reset(); }

  tprt_device_code code = {};
  std::shared_ptr<Device> device = cuda::makeDevice(code, {});
  DeviceStream &stream = *device->getStream(0);
  LoneRank host;

  /// Two sequences of 5 and 7 tokens, 4 heads that share 2 of keys, 3 and 6
  /// wide; heads lie within tokens.
  static tprt_attention_args makeArgs() {
    tprt_attention_args args = {};
    args.dtype = static_cast<int32_t>(GetParam());
    args.scale = 0.5;
    args.rows = 5;
    args.columns = 7;
    args.depth = 3;
    args.width = 6;
    std::fill_n(args.batch, TPRT_ATTENTION_BATCHES, 1);
    args.batch[5] = args.batch[6] = args.batch[7] = 2;
    auto set = [](tprt_attention_strides &strides, int64_t sequence,
                  int64_t pair, int64_t head, int64_t row) {
      strides.batch[5] = sequence;
      strides.batch[6] = pair;
      strides.batch[7] = head;
      strides.row = row;
      strides.col = 1;
    };
    set(args.query, 60, 6, 3, 12);
    set(args.key, 42, 3, 0, 6);
    set(args.value, 84, 6, 0, 12);
    set(args.output, 120, 12, 6, 24);
    return args;
  }

  void run(const tprt_attention_args &args, bool hasMask = false) {
    constexpr int64_t count = 240;
    std::mt19937 generator(1);
    std::vector<std::shared_ptr<std::byte>> onHost, onDevice;
    for (int i = 0; i < 5; ++i) {
      Dtype dtype =
          i == 3 && args.mask == TPRT_BOOLEAN_MASK ? Dtype::I1 : GetParam();
      auto values = allocateAligned(count * 8);
      for (int64_t j = 0; j < count; ++j) {
        float value = static_cast<int>(generator() % 17) / 4.0f - 2;
        if (dtype == Dtype::F32)
          reinterpret_cast<float *>(values.get())[j] = value;
        else if (dtype == Dtype::F64)
          reinterpret_cast<double *>(values.get())[j] = value;
        else if (dtype == Dtype::I1) // each row sees something
          reinterpret_cast<uint8_t *>(values.get())[j] =
              j % 7 == 0 || value > 0;
        else
          convertFromF32(dtype, &value, values.get() + 2 * j, 1);
      }
      onHost.push_back(values);
      onDevice.push_back(device->allocate(count * byteWidth(dtype)));
      device->write({dtype, {count}, values}, makeBox({0}, {count}), dtype,
                    onDevice.back().get());
    }
    ASSERT_EQ(tprt_attention(&host.rank, &args, onHost[0].get(),
                             onHost[1].get(), onHost[2].get(),
                             hasMask ? onHost[3].get() : nullptr,
                             onHost[4].get()),
              TPRT_OK)
        << host.rank.error;
    stream.beginRun();
    stream.attention(args, onDevice[0].get(), onDevice[1].get(),
                     onDevice[2].get(), hasMask ? onDevice[3].get() : nullptr,
                     onDevice[4].get());
    stream.endRun();
    stream.finish([](auto) {});
    auto result = allocateAligned(count * 8);
    device->read(onDevice[4].get(), GetParam(), {count}, makeBox({0}, {count}),
                 result.get());
    double tolerance = byteWidth(GetParam()) == 2 ? 0.02 : 1e-5;
    for (int64_t i = 0; i < count; ++i)
      ASSERT_NEAR(loadAsDouble(GetParam(), result.get(), i),
                  loadAsDouble(GetParam(), onHost[4].get(), i), tolerance)
          << i;
  }
};

} // namespace

TEST_P(CudaAttentionTest, AsOnTheHost) {
  tprt_attention_args args = makeArgs();
  run(args);
  args.causal = 1;
  run(args);
  args.causal = 0;
  args.mask_strides.row = 7;
  args.mask_strides.col = 1;
  for (int32_t mask : {TPRT_ADDED_MASK, TPRT_BOOLEAN_MASK}) {
    args.mask = mask;
    run(args, /*hasMask=*/true);
  }
  EXPECT_EQ(fake::countCalls("cuLaunchKernel tprt_attention_" +
                             std::string(toString(GetParam())) +
                             " grid 40 block 128"),
            4u);
}

TEST_P(CudaAttentionTest, NamesLimits) {
  tprt_attention_args args = makeArgs();
  args.depth = 1025;
  auto call = [&] {
    stream.attention(args, nullptr, nullptr, nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(errorOf(call), "tprt_attention: heads of 1025 elements aren't "
                           "supported on CUDA devices, the limit is 1024");
  args.dtype = TPRT_I32;
  EXPECT_EQ(errorOf(call),
            "tprt_attention: dtype is not f32, f64, f16 or bf16");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaAttentionTest,
                         testing::Values(Dtype::F32, Dtype::F64, Dtype::F16,
                                         Dtype::BF16),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });
