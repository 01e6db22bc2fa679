//===- NcclBackend.cpp - `nccl` on fake devices --------------------------===//

#include "Backend.h"

#include "Cuda/CudaDevice.h"
#include "Jobs.h"

#include <map>
#include <mutex>

using namespace tprt;
using namespace tprt::test;

const int test::numRounds = 20;

/// Of a rank, without kernels.
static Device &getDevice(int64_t rank) {
  static const tprt_device_code code = {};
  static std::map<int64_t, std::shared_ptr<Device>> devices;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Device> &device = devices[rank];
  if (!device)
    device = cuda::makeDevice(code, {.device = static_cast<int>(rank % 8)});
  return *device;
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

int64_t test::runCollective(Communicator &communicator, int64_t id,
                            const std::byte *src, int64_t srcBytes,
                            std::byte *dst, int64_t dstBytes) {
  Device &device = getDevice(communicator.getRank());
  DeviceStream &stream = *device.getStream(communicator.getRank());
  stream.beginRun();
  std::shared_ptr<std::byte> operand = device.allocate(srcBytes);
  device.write({Dtype::I1, {srcBytes}, {src, [](const std::byte *) {}}},
               makeBox({0}, {srcBytes}), Dtype::I1, operand.get());
  std::shared_ptr<std::byte> result =
      src == dst ? operand : device.allocate(dstBytes);
  int64_t received = communicator.run(id, operand.get(), result.get());
  if (src != dst) // what is enqueued behind may overwrite the operand
    stream.fill(operand.get(), 0xEE, 1, srcBytes);
  stream.endRun();
  stream.finish([&](auto) { communicator.poll(); });
  device.read(result.get(), Dtype::I1, {dstBytes}, makeBox({0}, {dstBytes}),
              dst);
  return received;
}

std::vector<int64_t> test::startCollectives(Communicator &communicator,
                                            const std::vector<Call> &calls,
                                            const std::vector<size_t> &order) {
  Device &device = getDevice(communicator.getRank());
  DeviceStream &stream = *device.getStream(communicator.getRank());
  stream.beginRun();
  std::vector<std::shared_ptr<std::byte>> uploaded, operands, results;
  for (const Call &call : calls) {
    uploaded.push_back(device.allocate(call.srcBytes));
    device.write({Dtype::I1, {call.srcBytes}, {call.src, [](auto *) {}}},
                 makeBox({0}, {call.srcBytes}), Dtype::I1,
                 uploaded.back().get());
    operands.push_back(device.allocate(call.srcBytes));
    results.push_back(call.src == call.dst ? operands.back()
                                           : device.allocate(call.dstBytes));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    // Computed on the device right before.
    stream.copy(operands[i].get(), uploaded[i].get(), calls[i].srcBytes);
    communicator.start(calls[i].id, operands[i].get(), results[i].get());
  }
  std::vector<int64_t> received(calls.size());
  for (size_t i : order) {
    received[i] = communicator.wait(calls[i].id);
    if (results[i] != operands[i])
      stream.fill(operands[i].get(), 0xEE, 1, calls[i].srcBytes);
  }
  stream.endRun();
  stream.finish([&](auto) { communicator.poll(); });
  for (size_t i = 0; i < calls.size(); ++i)
    device.read(results[i].get(), Dtype::I1, {calls[i].dstBytes},
                makeBox({0}, {calls[i].dstBytes}), calls[i].dst);
  return received;
}
