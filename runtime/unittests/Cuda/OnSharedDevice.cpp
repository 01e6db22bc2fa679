//===- OnSharedDevice.cpp - Ranks that share the fake device --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestedBackends.h"

#include "cuda/CudaDevice.h"

using namespace tprt;
using namespace tprt::test;

std::vector<const Backend *> test::getBackendsOfTests() { return {}; }

Device *test::getDevice(int64_t) {
  static const tprt_device_code code = {};
  static const std::shared_ptr<Device> device = cuda::makeDevice({&code}, {});
  return device.get();
}

bool test::canReduce(Reduction, Dtype) { return true; }

bool test::canBeHere(const Backend &backend) { return !backend.needsProcesses; }
