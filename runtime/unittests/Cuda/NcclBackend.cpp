//===- NcclBackend.cpp - `nccl` on fake devices ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Backend.h"

#include "DeviceBackend.h"
#include "Jobs.h"
#include "cuda/CudaDevice.h"

#include <map>
#include <mutex>

using namespace tprt;
using namespace tprt::test;

Device &test::getDevice(int64_t rank) {
  static const tprt_device_code code = {};
  static std::map<int64_t, std::shared_ptr<Device>> devices;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Device> &device = devices[rank];
  if (!device)
    device = cuda::makeDevice(code, {.device = static_cast<int>(rank % 8)});
  return *device;
}

bool test::canReduce(Reduction reduction, Dtype dtype) {
  bool isByte = byteWidth(dtype) == 1;
  return dtype != Dtype::I16 && !(isByte && reduction == Reduction::Avg);
}

std::vector<std::unique_ptr<Communicator>>
test::makeCommunicators(const Manifest &manifest,
                        const CommunicatorOptions &options) {
  int64_t worldSize = manifest.worldSize;
  std::vector<Job> jobs = makeJobs(worldSize);
  static std::vector<std::unique_ptr<Connection>> connections; // outlive them
  size_t first = connections.size();
  connections.resize(first + worldSize);
  std::vector<std::unique_ptr<Communicator>> communicators(worldSize);
  runThreads(worldSize, [&](int64_t rank) {
    connections[first + rank] =
        std::make_unique<Connection>(jobs[rank], std::chrono::seconds(60));
    CommunicatorOptions onDevice = options;
    onDevice.device = &getDevice(rank);
    communicators[rank] = std::move(
        connections[first + rank]->getNccl()(manifest, onDevice).front());
  });
  return communicators;
}
