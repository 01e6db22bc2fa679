//===- CudaBackend.cpp - `local` on the fake device -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Backend.h"

#include "DeviceBackend.h"
#include "cuda/CudaDevice.h"

using namespace tprt;
using namespace tprt::test;

/// All ranks share it.
Device &test::getDevice(int64_t) {
  static const tprt_device_code code = {};
  static const std::shared_ptr<Device> device = cuda::makeDevice(code, {});
  return *device;
}

bool test::canReduce(Reduction, Dtype) { return true; }

std::vector<std::unique_ptr<Communicator>>
test::makeCommunicators(const Manifest &manifest,
                        const CommunicatorOptions &options) {
  CommunicatorOptions onDevice = options;
  onDevice.device = &getDevice(/*rank=*/0);
  return makeLocalCommunicators(manifest, onDevice);
}
