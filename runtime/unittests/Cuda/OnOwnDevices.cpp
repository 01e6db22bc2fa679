//===- OnOwnDevices.cpp - Each rank on a fake device of its own -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestedBackends.h"

#include "cuda/CudaDevice.h"

#include <map>
#include <mutex>

using namespace tprt;
using namespace tprt::test;

std::vector<const Backend *> test::getBackendsOfTests() { return {}; }

Device *test::getDevice(int64_t rank) {
  static const tprt_device_code code = {};
  static std::map<int64_t, std::shared_ptr<Device>> devices;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Device> &device = devices[rank];
  if (!device)
    device = cuda::makeDevice({&code}, {.device = static_cast<int>(rank % 8)});
  return device.get();
}

bool test::canReduce(Reduction reduction, Dtype dtype) {
  bool isByte = byteWidth(dtype) == 1;
  return dtype != Dtype::I16 && !(isByte && reduction == Reduction::Avg);
}

bool test::canBeHere(const Backend &backend) {
  return backend.needsProcesses && backend.programs != Backend::OfHost;
}
