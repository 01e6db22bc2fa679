//===- GemmCase.h - tprt_gemm on a device and on the host -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_CUDA_GEMMCASE_H
#define TPRT_UNITTESTS_CUDA_GEMMCASE_H

#include "Fake.h"
#include "LoneRank.h"
#include "TestUtils.h"
#include "cuda/CudaDevice.h"

#include <random>

namespace tprt::test {

/// A product, and which of its optional operands there are.
struct GemmCase {
  const char *name;
  tprt_gemm_args args;
  bool hasBias = false, hasAddend = false, hasFactor = false;
};

/// Numbers of one dtype, on the host and on the device.
class TestedOperand {
public:
  TestedOperand(Device &device, Dtype dtype, int64_t count, uint32_t seed,
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

/// Runs products of one dtype on the fake device and on the host.
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

  void run(GemmCase c, double tolerance = 0, int64_t count = 512) {
    SCOPED_TRACE(c.name);
    Dtype dtype = GetParam();
    c.args.dtype = static_cast<int32_t>(dtype);
    TestedOperand a(*device, dtype, count, 1), b(*device, dtype, count, 2),
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

inline std::string getTypeName(const testing::TestParamInfo<Dtype> &info) {
  return std::string(toString(info.param));
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_CUDA_GEMMCASE_H
