//===- MpiExchanger.cpp - Bytes between processes by MPI ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/mpi/MpiExchanger.h"

#include <algorithm>
#include <cstring>

using namespace tprt;
using namespace tprt::mpi;

/// The longest message; MPI counts bytes with an int.
static constexpr int64_t maxBytes = int64_t(1) << 30;

/// Every implementation has tags up to 32767.
static int toTag(int64_t label) {
  return static_cast<int>((label + 1) & 0x7fff);
}

void MpiExchanger::startTransfers(Slot &slot, int rank, int tag,
                                  std::byte *data, int64_t bytes,
                                  bool isReceived) {
  const Plugin &plugin = mpi->getPlugin();
  for (int64_t begin = 0; begin < bytes; begin += maxBytes) {
    int part = static_cast<int>(std::min(bytes - begin, maxBytes));
    Transfer transfer{0, rank, part, isReceived};
    if (isReceived)
      mpi->check(plugin.receive(mpi->getWorld(), data + begin, part, rank, tag,
                                &transfer.request),
                 "MPI_Irecv");
    else
      mpi->check(plugin.send(mpi->getWorld(), data + begin, part, rank, tag,
                             &transfer.request),
                 "MPI_Isend");
    slot.transfers.push_back(transfer);
  }
}

size_t MpiExchanger::start(const Exchange &exchange) {
  const std::vector<int64_t> &members = groups.at(exchange.group);
  auto unused = std::find_if(slots.begin(), slots.end(),
                             [](const Slot &slot) { return !slot.isUsed; });
  if (unused == slots.end())
    unused = slots.emplace(unused);
  Slot &slot = *unused;
  slot.isUsed = true;
  slot.transfers.clear();
  slot.numDone = 0;
  int tag = toTag(exchange.label);
  // Each rank begins with the member behind it, so that not all send to one.
  size_t n = members.size();
  size_t self =
      std::find(members.begin(), members.end(), getRank()) - members.begin();
  for (bool isReceived : {true, false}) {
    const std::vector<int64_t> &bytes =
        isReceived ? exchange.receivedBytes : exchange.sentBytes;
    std::vector<int64_t> offsets(n);
    for (size_t i = 1; i < n; ++i)
      offsets[i] = offsets[i - 1] + bytes[i - 1];
    std::byte *data =
        isReceived ? exchange.received : const_cast<std::byte *>(exchange.sent);
    for (size_t i = 1; i < n; ++i) {
      size_t member = isReceived ? (self + n - i) % n : (self + i) % n;
      startTransfers(slot, static_cast<int>(members[member]), tag,
                     data + offsets[member], bytes[member], isReceived);
    }
  }
  auto getOwn = [&](auto *data, const std::vector<int64_t> &bytes) {
    for (size_t i = 0; i < self; ++i)
      data += bytes[i];
    return data;
  };
  if (exchange.sentBytes[self] > 0)
    std::memcpy(getOwn(exchange.received, exchange.receivedBytes),
                getOwn(exchange.sent, exchange.sentBytes),
                exchange.sentBytes[self]);
  return unused - slots.begin();
}

bool MpiExchanger::testTransfer(Transfer &transfer) {
  if (transfer.isDone)
    return true;
  int isDone = 0, bytes = 0;
  mpi->check(mpi->getPlugin().test(&transfer.request, &isDone, &bytes),
             "MPI_Test");
  transfer.isDone = isDone;
  if (isDone && transfer.isReceived && bytes != transfer.bytes)
    throw executionError("the ranks' programs don't match: rank " +
                         std::to_string(transfer.rank) + " sent " +
                         std::to_string(bytes) + " bytes where rank " +
                         std::to_string(getRank()) + " expects " +
                         std::to_string(transfer.bytes));
  return isDone;
}

// MPI moves all messages whenever it is called, so one call is enough while
// something is missing.
bool MpiExchanger::test(size_t number) {
  Slot &slot = slots[number];
  for (; slot.numDone < slot.transfers.size(); ++slot.numDone)
    if (!testTransfer(slot.transfers[slot.numDone]))
      return false;
  slot.isUsed = false;
  return true;
}

std::vector<int64_t> MpiExchanger::getAwaited(size_t number) {
  std::vector<int64_t> ranks;
  for (Transfer &transfer : slots[number].transfers)
    if (!testTransfer(transfer))
      ranks.push_back(transfer.rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void MpiExchanger::poll() {
  try {
    rendezvous.poll();
  } catch (...) {
    giveUp();
    throw;
  }
}

void MpiExchanger::abort(const std::string &reason) {
  rendezvous.abort(reason);
  giveUp();
}

/// Nothing more is received, since the memory may be freed.
void MpiExchanger::giveUp() {
  mpi->giveUp();
  for (Slot &slot : slots)
    for (Transfer &transfer : slot.transfers)
      if (slot.isUsed && transfer.isReceived && !transfer.isDone) {
        transfer.isDone = true;
        mpi->getPlugin().cancel(transfer.request);
      }
}
