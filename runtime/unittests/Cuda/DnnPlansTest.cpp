//===- DnnPlansTest.cpp - cuDNN itself, on our graphs, without a device ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN can be asked what it would do on a device that isn't there. So this
// takes NVIDIA's library, not the fake one, and a description of devices, and
// asks for engines: whether its graphs are ours. Nothing is executed.
//
//===----------------------------------------------------------------------===//

#include "cuda/DnnCalls.h"

#include <gtest/gtest.h>

using namespace tprt;
using namespace tprt::cuda;

/// What cuDNN's own libraries leave isn't looked for (lsan_interface.h).
extern "C" int __lsan_is_turned_off() { return 1; }

namespace {

struct Architecture {
  int32_t version; ///< 900 for sm_90
  int32_t processors, sharedBytes;
};

class DnnPlansTest : public testing::TestWithParam<Architecture> {
protected:
  void SetUp() override {
    std::string text = describe(GetParam());
    device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
               text.data(), text.size());
    if (std::string reason = device.tryFinalize(); !reason.empty())
      GTEST_SKIP() << "this cuDNN describes devices otherwise: " << reason;
  }

  /// In the form that cuDNN 9 writes for its own use.
  static std::string describe(const Architecture &architecture) {
    std::string text = R"({"deviceName": "described", "maxGridSize":
      [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
      "regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
      "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
      "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
      "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1,
      "smClockRateKHz": 1500000, "memClockRateKHz": 2000000,
      "l2CacheSize": 50000000, "driverVer": 13000, "cudaDeviceId": 0,
      "totalGlobalMem": 80000000000)";
    text += ", \"deviceVer\": " + std::to_string(architecture.version);
    text +=
        ", \"multiProcessorCount\": " + std::to_string(architecture.processors);
    return text + ", \"maxSharedMemoryPerBlockOptin\": " +
           std::to_string(architecture.sharedBytes) + "}";
  }

  size_t countEngines(DnnGraph graph) {
    graph.finish(/*handle=*/nullptr);
    return graph.findEngines(&device).size();
  }

  DnnDescriptor device{CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR};
};

/// Two sequences, of 4 heads.
struct Case {
  const char *name;
  int64_t rows = 128, columns = 128, depth = 64, width = 64;
  bool causal = false;
  bool hasMask = false, maskPerRow = true, maskPerHead = false;
  int64_t keyHeads = 4;
  int64_t maskPitch = 0; ///< elements from a row to the next; 0: without gaps

  DnnAttention make(int32_t type, bool isGradient) const;
};

} // namespace

/// Heads lie within rows.
static DnnShape makeShape(int64_t heads, int64_t rows, int64_t columns) {
  return {{2, heads, rows, columns},
          {heads * rows * columns, columns, heads * columns, 1}};
}

DnnAttention Case::make(int32_t type, bool isGradient) const {
  constexpr int64_t heads = 4;
  DnnAttention attention;
  attention.type = type;
  attention.causal = causal;
  auto &operands = attention.operands;
  operands[DnnQuery] = makeShape(heads, rows, depth);
  operands[DnnKey] = makeShape(keyHeads, columns, depth);
  operands[DnnValue] = makeShape(keyHeads, columns, width);
  operands[DnnOutput] = makeShape(heads, rows, width);
  operands[DnnStatistics] = DnnShape::makeDense({2, heads, rows, 1});
  if (hasMask)
    operands[DnnMask] = DnnShape::makeDense(
        {2, maskPerHead ? heads : 1, maskPerRow ? rows : 1, columns});
  if (maskPitch)
    operands[DnnMask].strides = {rows * maskPitch, rows * maskPitch, maskPitch,
                                 1};
  if (isGradient) {
    operands[DnnRowSums] = operands[DnnStatistics];
    operands[DnnGradient] = operands[DnnOutput];
    operands[DnnQueryGradient] = operands[DnnQuery];
    operands[DnnKeyGradient] = operands[DnnKey];
    operands[DnnValueGradient] = operands[DnnValue];
  }
  return attention;
}

static const Case cases[] = {
    {"plain"},
    {.name = "causal", .causal = true},
    {.name = "odd sizes", .rows = 37, .columns = 51},
    {.name = "small heads", .depth = 40, .width = 40},
    {.name = "large heads", .depth = 128, .width = 128},
    {.name = "mask by row", .hasMask = true},
    {.name = "mask by head", .hasMask = true, .maskPerHead = true},
    {.name = "one mask for all rows", .hasMask = true, .maskPerRow = false},
    {.name = "padded mask",
     .rows = 37,
     .columns = 51,
     .hasMask = true,
     .maskPitch = 56},
    {.name = "mask and causal", .causal = true, .hasMask = true},
};

TEST_P(DnnPlansTest, Forward) {
  for (int32_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    for (const Case &c : cases)
      EXPECT_GT(countEngines(c.make(type, false).makeForward()), 0u) << c.name;
    Case grouped{.name = "grouped", .causal = true, .keyHeads = 2};
    EXPECT_GT(countEngines(grouped.make(type, false).makeForward()), 0u);
    Case oneRow{.name = "one row", .rows = 1, .columns = 300};
    EXPECT_GT(countEngines(oneRow.make(type, false).makeForward()), 0u);
  }
}

TEST_P(DnnPlansTest, Backward) {
  for (int32_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
    for (const Case &c : cases)
      EXPECT_GT(countEngines(c.make(type, true).makeBackward()), 0u) << c.name;
}

/// That it says no.
TEST_P(DnnPlansTest, RefusesWhatItDoesNotHave) {
  Case c{.name = "very large heads", .depth = 1024, .width = 1024};
  DnnAttention attention = c.make(CUDNN_DATA_HALF, true);
  size_t engines = 0;
  try {
    engines = countEngines(attention.makeBackward());
  } catch (const Error &) {
  }
  EXPECT_EQ(engines, 0u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, DnnPlansTest,
                         testing::Values(Architecture{800, 108, 166912},
                                         Architecture{900, 132, 232448},
                                         Architecture{1000, 148, 232448}),
                         [](const auto &info) {
                           return "sm_" +
                                  std::to_string(info.param.version / 10);
                         });
