//===- Communicator.cpp - Data exchange between ranks ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Communicator.h"

#include <algorithm>
#include <zlib.h>

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

void Communicator::agreeByExchange(const std::string &what,
                                   const std::string &value) {
  std::vector<std::string> all =
      exchange(value, std::max<size_t>(value.size(), 4096));
  for (size_t other = 1; other < all.size(); ++other)
    if (all[other] != all[0])
      throw executionError("the ranks don't agree on " + what + ": it is '" +
                           all[0] + "' on rank 0, '" + all[other] +
                           "' on rank " + std::to_string(other));
}

void Communicator::agreeOnAll(const NamedValues &values) {
  uLong digest = 0;
  for (const auto &[what, value] : values)
    for (const std::string &text : {what, value})
      digest = ::crc32(digest, reinterpret_cast<const Bytef *>(text.c_str()),
                       text.size() + 1);
  std::vector<std::string> all = exchange(std::to_string(digest), /*limit=*/16);
  if (std::equal(all.begin() + 1, all.end(), all.begin()))
    return;
  for (const auto &[what, value] : values)
    agree(what, value);
}

std::vector<std::string> Communicator::exchange(const std::string &, size_t) {
  throw executionError("the backend can't exchange values between ranks "
                       "(Communicator::exchange)");
}

std::string Communicator::getDescription() const { return ""; }

std::string Communicator::describeActivity() const { return ""; }
