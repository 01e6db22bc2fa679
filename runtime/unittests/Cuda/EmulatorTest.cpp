//===- EmulatorTest.cpp - What the emulator notices -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/CudaDevice.h"

#include "CudaOnHost.h"
#include "TestUtils.h"

using namespace tprt;
using namespace tprt::test;

namespace {
struct CopyArguments {
  const uint32_t *src;
  uint32_t *seen;
  bool commits, waits;
};
} // namespace

/// Each thread copies a number to shared memory, and reads it there.
static void copyNumbers(const CopyArguments a) {
  auto *shared = static_cast<uint32_t *>(fake::getThread()->shared);
  uint32_t thread = threadIdx.x;
  __pipeline_memcpy_async(shared + thread, a.src + thread, 4);
  if (a.commits)
    __pipeline_commit();
  if (a.waits)
    __pipeline_wait_prior(0);
  a.seen[thread] = shared[thread];
}

/// A copy happens no earlier than a thread waits for it, and every thread must
/// wait.
TEST(Emulator, ThreadsWaitForTheirCopies) {
  tprt_device_code code = {};
  for (bool commits : {false, true})
    for (bool waits : {false, true}) {
      SCOPED_TRACE(testing::Message() << commits << waits);
      fake::reset();
      std::shared_ptr<Device> device = cuda::makeDevice({&code}, {});
      DeviceStream &stream = *device->getStream(0);
      uint32_t numbers[32], seen[32] = {};
      for (uint32_t i = 0; i < 32; ++i)
        numbers[i] = 100 + i;
      CopyArguments arguments = {numbers, seen, commits, waits};
      void *parameters[] = {&arguments};
      for (int repeat = 0; repeat < 2; ++repeat) // what is open doesn't remain
        runEmulated(fake::enterKernel<CopyArguments, copyNumbers>, 1, 32, 128,
                    parameters);
      bool isRight = commits && waits;
      EXPECT_EQ(seen[7], isRight ? 107 : 0xCDCDCDCD);
      auto finish = [&] { stream.finish([](auto) {}); };
      if (isRight)
        finish();
      else
        EXPECT_TRUE(contains(errorOf(finish), "failed"));
      fake::reset();
    }
}
