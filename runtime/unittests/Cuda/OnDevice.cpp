//===- OnDevice.cpp - Collectives on copies in devices' memory ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestedBackends.h"

#include "device/Device.h"

using namespace tprt;
using namespace tprt::test;

const int test::numRounds = 20;

int64_t test::runCollective(Communicator &communicator, int64_t id,
                            const std::byte *src, int64_t srcBytes,
                            std::byte *dst, int64_t dstBytes) {
  Device &device = *getDevice(communicator.getRank());
  DeviceStream &stream = *device.getStream(communicator.getRank());
  stream.beginRun();
  auto copyBytes = [&](const std::byte *data, int64_t bytes) {
    std::shared_ptr<std::byte> copy = device.allocate(bytes);
    Tensor tensor{Dtype::I1, {bytes}, {data, [](const std::byte *) {}}};
    device.write(tensor, makeBox({0}, {bytes}), Dtype::I1, copy.get());
    return copy;
  };
  std::shared_ptr<std::byte> operand = copyBytes(src, srcBytes);
  std::shared_ptr<std::byte> result =
      src == dst ? operand : device.allocate(dstBytes);
  int64_t received = communicator.run(id, operand.get(), result.get());
  // What is enqueued behind a collective may overwrite its operand, even where
  // others haven't run theirs.
  if (src != dst)
    stream.fill(operand.get(), 0xEE, 1, srcBytes);
  stream.endRun();
  stream.finish([&](auto) { communicator.poll(); });
  device.read(result.get(), Dtype::I1, {dstBytes}, makeBox({0}, {dstBytes}),
              dst);
  communicator.barrier(); // memory of others is in use until here
  return received;
}

std::vector<int64_t> test::startCollectives(Communicator &communicator,
                                            const std::vector<Call> &calls,
                                            const std::vector<size_t> &order) {
  Device &device = *getDevice(communicator.getRank());
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
  communicator.barrier(); // memory of others is in use until here
  return received;
}
