//===- Communicator.cpp - Data exchange between ranks ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Communicator.h"

using namespace tprt;

// Out of line, so that the class's type information is emitted in one object
// file.
Communicator::~Communicator() = default;

// For backends whose collectives can't go on by themselves. All ranks start
// collectives in the same order, so each can be run where it starts.
void Communicator::start(int64_t id, const std::byte *src, std::byte *dst) {
  received[id] = run(id, src, dst);
}

int64_t Communicator::wait(int64_t id) { return received.at(id); }

std::shared_ptr<std::byte> Communicator::allocate(int64_t) { return nullptr; }

bool Communicator::warmUp(std::byte *, int64_t) { return true; }

void Communicator::agree(const std::string &, const std::string &) {}

std::vector<std::string> Communicator::exchange(const std::string &, size_t) {
  throw executionError("the backend can't exchange values between ranks "
                       "(Communicator::exchange)");
}

std::string Communicator::getDescription() const { return ""; }

std::string Communicator::describeActivity() const { return ""; }
