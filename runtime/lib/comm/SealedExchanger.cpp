//===- SealedExchanger.cpp - Exchanges with checksums ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/SealedExchanger.h"

#include "support/Checksum.h"
#include "tprt/Error.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace tprt;

namespace {

/// Follows a part.
struct Seal {
  uint32_t crc = 0;   ///< of the part and the host
  char host[60] = ""; ///< the sender's

  uint32_t computeCrc(const std::byte *part, int64_t bytes) const {
    return updateCrc(updateCrc(0, part, bytes), host, sizeof(host));
  }
};

class SealedExchanger final : public Exchanger {
public:
  SealedExchanger(std::unique_ptr<Exchanger> exchanger,
                  std::function<std::string(int64_t)> describe)
      : exchanger(std::move(exchanger)), describe(std::move(describe)) {
    ::gethostname(own.host, sizeof(own.host) - 1);
  }

  int64_t getRank() const override { return exchanger->getRank(); }
  int64_t getWorldSize() const override { return exchanger->getWorldSize(); }
  int64_t getNumLocalRanks() const override {
    return exchanger->getNumLocalRanks();
  }
  void connect(const std::vector<std::vector<int64_t>> &all) override {
    groups = all;
    exchanger->connect(all);
  }
  size_t start(const Exchange &exchange) override;
  bool test(size_t number) override;
  std::vector<int64_t> getAwaited(size_t number) override;
  std::string describeStopped() const override {
    return exchanger->describeStopped();
  }
  void poll() override { exchanger->poll(); }
  void abort(const std::string &reason) override { exchanger->abort(reason); }
  void setActivity(std::function<std::string()> activity) override {
    exchanger->setActivity(std::move(activity));
  }

private:
  /// An exchange that is under way.
  struct Slot {
    enum { Unused, Moving, Sealing } state = Unused;
    size_t parts = 0, seals = 0; ///< the numbers of the two exchanges
    int64_t label = 0;
    std::vector<int64_t> members;
    const std::byte *received = nullptr;
    std::vector<int64_t> receivedBytes;
    /// By member, without those that exchange nothing and this rank.
    std::vector<Seal> sentSeals, receivedSeals;
  };

  std::vector<int64_t> sizeSeals(const std::vector<int64_t> &members,
                                 const std::vector<int64_t> &bytes) const;
  void check(const Slot &slot) const;

  std::unique_ptr<Exchanger> exchanger;
  std::function<std::string(int64_t)> describe;
  Seal own; ///< with this rank's host
  std::vector<std::vector<int64_t>> groups;
  std::vector<std::unique_ptr<Slot>> slots; ///< whose seals stay in place
};

} // namespace

/// The bytes of the seal of each member's part. A rank's part for itself has
/// none.
std::vector<int64_t>
SealedExchanger::sizeSeals(const std::vector<int64_t> &members,
                           const std::vector<int64_t> &bytes) const {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < members.size(); ++i)
    sizes.push_back(bytes[i] > 0 && members[i] != getRank() ? sizeof(Seal) : 0);
  return sizes;
}

size_t SealedExchanger::start(const Exchange &exchange) {
  auto unused = std::find_if(slots.begin(), slots.end(), [](const auto &slot) {
    return slot->state == Slot::Unused;
  });
  if (unused == slots.end())
    unused = slots.insert(unused, std::make_unique<Slot>());
  Slot &slot = **unused;
  slot.label = exchange.label;
  slot.members = groups.at(exchange.group);
  slot.received = exchange.received;
  slot.receivedBytes = exchange.receivedBytes;
  std::vector<int64_t> sent = sizeSeals(slot.members, exchange.sentBytes),
                       received =
                           sizeSeals(slot.members, exchange.receivedBytes);
  slot.sentSeals.clear();
  const std::byte *part = exchange.sent;
  for (size_t i = 0; i < slot.members.size(); ++i) {
    if (sent[i] > 0) {
      own.crc = own.computeCrc(part, exchange.sentBytes[i]);
      slot.sentSeals.push_back(own);
    }
    part += exchange.sentBytes[i];
  }
  slot.receivedSeals.assign(
      received.size() - std::count(received.begin(), received.end(), 0), {});
  slot.parts = exchanger->start(exchange);
  slot.seals = exchanger->start(
      {exchange.group, exchange.label,
       reinterpret_cast<const std::byte *>(slot.sentSeals.data()), sent,
       reinterpret_cast<std::byte *>(slot.receivedSeals.data()), received});
  slot.state = Slot::Moving;
  return unused - slots.begin();
}

bool SealedExchanger::test(size_t number) {
  Slot &slot = *slots[number];
  if (slot.state == Slot::Moving && exchanger->test(slot.parts))
    slot.state = Slot::Sealing;
  if (slot.state == Slot::Moving || !exchanger->test(slot.seals))
    return false;
  slot.state = Slot::Unused;
  check(slot);
  return true;
}

std::vector<int64_t> SealedExchanger::getAwaited(size_t number) {
  const Slot &slot = *slots[number];
  return exchanger->getAwaited(slot.state == Slot::Moving ? slot.parts
                                                          : slot.seals);
}

static std::string formatCrc(uint32_t crc) {
  char text[16];
  std::snprintf(text, sizeof(text), "%08x", crc);
  return text;
}

static std::string nameRank(int64_t rank, const Seal &seal) {
  std::string host(seal.host, strnlen(seal.host, sizeof(seal.host)));
  return "rank " + std::to_string(rank) + " on host '" + host + "'";
}

void SealedExchanger::check(const Slot &slot) const {
  const std::byte *part = slot.received;
  const Seal *seal = slot.receivedSeals.data();
  std::vector<int64_t> sizes = sizeSeals(slot.members, slot.receivedBytes);
  for (size_t i = 0; i < slot.members.size(); ++i) {
    int64_t bytes = slot.receivedBytes[i];
    if (sizes[i] > 0) {
      uint32_t crc = seal->computeCrc(part, bytes);
      if (crc != seal->crc)
        throw executionError(nameRank(getRank(), own) + " received " +
                             std::to_string(bytes) + " bytes with CRC-32 " +
                             formatCrc(crc) + " in " + describe(slot.label) +
                             ", but " + nameRank(slot.members[i], *seal) +
                             " sent bytes with CRC-32 " + formatCrc(seal->crc));
      ++seal;
    }
    part += bytes;
  }
}

std::unique_ptr<Exchanger>
tprt::makeSealed(std::unique_ptr<Exchanger> exchanger,
                 std::function<std::string(int64_t label)> describe) {
  return std::make_unique<SealedExchanger>(std::move(exchanger),
                                           std::move(describe));
}
