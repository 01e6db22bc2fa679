//===- OnHost.cpp - Ranks in the host's memory ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestedBackends.h"
#include "ThreadTransport.h"

#include <algorithm>

using namespace tprt;

const int test::numRounds = 2000;

bool test::canReduce(Reduction, Dtype) { return true; }

bool test::canBeHere(const Backend &backend) {
  return backend.programs != Backend::OfDevices;
}

std::vector<const Backend *> test::getBackendsOfTests() {
  return {&getTransportBackend()};
}

Device *test::getDevice(int64_t) { return nullptr; }

int64_t test::runCollective(Communicator &communicator, int64_t id,
                            const std::byte *src, int64_t, std::byte *dst,
                            int64_t) {
  return communicator.run(id, src, dst);
}

std::vector<int64_t> test::startCollectives(Communicator &communicator,
                                            const std::vector<Call> &calls,
                                            const std::vector<size_t> &order) {
  std::vector<std::vector<std::byte>> operands;
  for (const Call &call : calls) {
    operands.emplace_back(call.src, call.src + call.srcBytes);
    communicator.start(call.id,
                       call.src == call.dst ? call.dst : operands.back().data(),
                       call.dst);
  }
  std::vector<int64_t> received(calls.size());
  for (size_t i : order) {
    received[i] = communicator.wait(calls[i].id);
    std::fill(operands[i].begin(), operands[i].end(), std::byte{0xEE});
  }
  return received;
}
