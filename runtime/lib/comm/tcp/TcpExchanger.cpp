//===- TcpExchanger.cpp - Bytes between processes by TCP ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/tcp/TcpExchanger.h"

#include "comm/Handshake.h"
#include "tprt/Communicator.h"
#include "tprt/Error.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unistd.h>

using namespace tprt;
using namespace tprt::tcp;

/// A part that is early gets memory as its bytes arrive.
static constexpr uint64_t earlyBytes = uint64_t(1) << 20;

/// How long a rank whose connection has ended waits for the rendezvous to say
/// why.
static constexpr std::chrono::milliseconds reasonTime(2'000);

//===----------------------------------------------------------------------===//
// Connections
//===----------------------------------------------------------------------===//

namespace {
/// Where a rank listens.
struct Place {
  std::string host, address;
  uint16_t port;

  std::string encode() const {
    return host + '\n' + address + '\n' + std::to_string(port);
  }
  static Place decode(const std::string &text) {
    size_t first = text.find('\n'), last = text.rfind('\n');
    uint16_t port = 0;
    const char *end = text.data() + text.size();
    if (first == last ||
        std::from_chars(text.data() + last + 1, end, port).ptr != end)
      throw executionError("a rank sent no place where it listens");
    return {text.substr(0, first), text.substr(first + 1, last - first - 1),
            port};
  }
};
} // namespace

/// The connections with all other ranks, by rank. Each rank connects to those
/// below it, in order, and then those above it connect to this one.
std::vector<Socket> TcpExchanger::meet(std::chrono::milliseconds timeout) {
  constexpr size_t maxBytes = 1024;
  Job own = rendezvous.getJob();
  std::vector<Socket> sockets(own.worldSize);
  if (own.worldSize == 1)
    return sockets;
  auto look = [this] { rendezvous.poll(); };
  bool listens = own.rank + 1 < own.worldSize;
  own.address = rendezvous.getOwnAddress();
  own.listener = -1; // rank 0's has been used
  if (listens)
    own.listenAtFreePort();
  Socket listener(std::exchange(own.listener, -1));
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  std::vector<Place> places;
  for (const std::string &text : rendezvous.exchange(
           Place{host, own.address, own.port}.encode(), maxBytes))
    places.push_back(Place::decode(text));
  numLocal = std::ranges::count(places, host, &Place::host);
  for (int64_t rank = 0; rank < own.rank; ++rank) {
    Job other = own;
    other.address = places[rank].address;
    other.port = places[rank].port;
    sockets[rank] = joinRank(other, rank, timeout, look);
  }
  if (!listens)
    return sockets;
  own.listener = listener.release();
  std::vector<Socket> above = admitRanks(own, timeout, look);
  for (int64_t rank = own.rank + 1; rank < own.worldSize; ++rank)
    sockets[rank] = std::move(above[rank]);
  return sockets;
}

TcpExchanger::TcpExchanger(Rendezvous &rendezvous,
                           std::chrono::milliseconds timeout)
    : rendezvous(rendezvous), peerNumbers(rendezvous.getJob().worldSize) {
  std::vector<Socket> sockets = meet(timeout);
  for (int64_t rank = 0; rank < getWorldSize(); ++rank) {
    if (rank == getRank())
      continue;
    peerNumbers[rank] = peers.size();
    entries.push_back({sockets[rank].get(), 0, 0});
    peers.emplace_back(rank, std::move(sockets[rank]));
  }
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

size_t TcpExchanger::start(const Exchange &exchange) {
  const std::vector<int64_t> &members = groups.at(exchange.group);
  auto unused = std::ranges::find_if(
      slots, [](const Slot &slot) { return !slot.isUsed; });
  if (unused == slots.end())
    unused = slots.emplace(unused);
  Slot &slot = *unused;
  slot.isUsed = true;
  slot.transfers.clear();
  size_t n = members.size();
  slot.transfers.reserve(2 * n); // they stay where they are
  size_t self = std::ranges::find(members, getRank()) - members.begin();
  std::vector<size_t> sentAt(n), receivedAt(n);
  for (size_t i = 1; i < n; ++i) {
    sentAt[i] = sentAt[i - 1] + exchange.sentBytes[i - 1];
    receivedAt[i] = receivedAt[i - 1] + exchange.receivedBytes[i - 1];
  }
  if (exchange.sentBytes[self] > 0)
    std::memcpy(exchange.received + receivedAt[self],
                exchange.sent + sentAt[self], exchange.sentBytes[self]);
  // Each rank begins with the member behind it, so that not all send to one.
  for (size_t i = 1; i < n; ++i) {
    size_t member = (self + i) % n;
    Peer &peer = peers[peerNumbers[members[member]]];
    if (int64_t bytes = exchange.receivedBytes[member]) {
      Transfer &transfer = slot.transfers.emplace_back(
          Transfer{peer.rank, exchange.label,
                   exchange.received + receivedAt[member], bytes});
      auto early = std::ranges::find_if(peer.incoming, [&](Incoming &part) {
        return part.hasHead() && !part.transfer &&
               part.head.label == exchange.label;
      });
      if (early == peer.incoming.end()) {
        peer.awaited.push_back(&transfer);
      } else {
        checkSize(transfer, early->head);
        std::ranges::copy_n(early->early.begin(), early->numReceived,
                            transfer.data);
        early->transfer = &transfer;
        transfer.isDone = early->isComplete();
        if (transfer.isDone)
          peer.incoming.erase(early);
      }
    }
    if (int64_t bytes = exchange.sentBytes[member]) {
      Transfer &transfer = slot.transfers.emplace_back(Transfer{
          peer.rank, exchange.label,
          const_cast<std::byte *>(exchange.sent + sentAt[member]), bytes});
      peer.outgoing.push_back(
          {&transfer, {exchange.label, static_cast<uint64_t>(bytes)}});
      send(peer);
    }
  }
  return unused - slots.begin();
}

void TcpExchanger::checkSize(const Transfer &transfer, const Head &head) const {
  if (head.bytes != static_cast<uint64_t>(transfer.bytes))
    throw executionError("the ranks' programs don't match: rank " +
                         std::to_string(transfer.rank) + " sent " +
                         std::to_string(head.bytes) + " bytes where rank " +
                         std::to_string(getRank()) + " expects " +
                         std::to_string(transfer.bytes));
}

/// Sends what the connection takes.
void TcpExchanger::send(Peer &peer) {
  // The heads of small parts are sent together with them.
  constexpr size_t smallBytes = 4096;
  while (!isGivenUp && !peer.ended && !peer.outgoing.empty()) {
    Outgoing &part = peer.outgoing.front();
    const auto *data = reinterpret_cast<const char *>(part.transfer->data);
    size_t all = sizeof(Head) + part.head.bytes;
    ptrdiff_t count;
    if (part.numSent < sizeof(Head)) {
      char bytes[sizeof(Head) + smallBytes];
      size_t size = std::min(all, sizeof(bytes));
      std::memcpy(bytes, &part.head, sizeof(Head));
      std::memcpy(bytes + sizeof(Head), data, size - sizeof(Head));
      count = peer.socket.write({bytes + part.numSent, size - part.numSent});
    } else {
      size_t at = part.numSent - sizeof(Head);
      count = peer.socket.write({data + at, part.head.bytes - at});
    }
    if (count < 0)
      peer.ended.emplace(reasonTime);
    if (count <= 0)
      return;
    part.numSent += count;
    if (part.numSent < all)
      continue;
    part.transfer->isDone = true;
    peer.outgoing.pop_front();
  }
}

/// The first one that has been started with this label.
TcpExchanger::Transfer *TcpExchanger::takeAwaited(Peer &peer,
                                                  const Head &head) {
  auto found = std::ranges::find(peer.awaited, head.label, &Transfer::label);
  if (found == peer.awaited.end())
    return nullptr;
  Transfer *transfer = *found;
  checkSize(*transfer, head);
  peer.awaited.erase(found);
  return transfer;
}

/// What Socket::read returns.
ptrdiff_t TcpExchanger::readPart(Peer &peer, Incoming &part) {
  if (!part.hasHead()) {
    ptrdiff_t count =
        peer.socket.read(reinterpret_cast<char *>(&part.head) + part.numHead,
                         sizeof(Head) - part.numHead);
    if (count > 0)
      part.numHead += count;
    if (part.hasHead())
      part.transfer = takeAwaited(peer, part.head);
    return count;
  }
  uint64_t bytes = part.head.bytes - part.numReceived;
  std::byte *data;
  if (part.transfer) {
    data = part.transfer->data + part.numReceived;
  } else {
    bytes = std::min(bytes, earlyBytes);
    part.early.resize(part.numReceived + bytes);
    data = part.early.data() + part.numReceived;
  }
  ptrdiff_t count = peer.socket.read(data, bytes);
  if (count > 0)
    part.numReceived += count;
  return count;
}

/// Receives what has arrived.
void TcpExchanger::receive(Peer &peer) {
  while (!peer.ended) {
    if (peer.incoming.empty() || peer.incoming.back().isComplete())
      peer.incoming.emplace_back();
    Incoming &part = peer.incoming.back();
    ptrdiff_t count = readPart(peer, part);
    if (count == 0)
      peer.ended.emplace(reasonTime);
    if (count <= 0)
      return;
    if (part.isComplete() && part.transfer) {
      part.transfer->isDone = true;
      peer.incoming.pop_back();
    }
  }
}

void TcpExchanger::moveAll() {
  if (isGivenUp || peers.empty())
    return;
  for (size_t i = 0; i < peers.size(); ++i) {
    entries[i].fd = peers[i].ended ? -1 : peers[i].socket.get();
    entries[i].events =
        static_cast<short>(POLLIN | (peers[i].outgoing.empty() ? 0 : POLLOUT));
  }
  if (::poll(entries.data(), entries.size(), /*timeout=*/0) <= 0)
    return;
  for (size_t i = 0; i < peers.size(); ++i) {
    if (entries[i].revents & POLLOUT)
      send(peers[i]);
    if (entries[i].revents & ~POLLOUT)
      receive(peers[i]);
  }
}

bool TcpExchanger::test(size_t number) {
  Slot &slot = slots[number];
  auto isOver = [&] {
    return std::ranges::all_of(slot.transfers, &Transfer::isDone);
  };
  if (!isOver()) {
    moveAll();
    if (!isOver())
      return false;
  }
  slot.isUsed = false;
  return true;
}

std::vector<int64_t> TcpExchanger::getAwaited(size_t number) {
  std::vector<int64_t> ranks;
  for (const Transfer &transfer : slots[number].transfers)
    if (!transfer.isDone)
      ranks.push_back(transfer.rank);
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

void TcpExchanger::poll() {
  try {
    rendezvous.poll();
  } catch (...) {
    isGivenUp = true; // the memory of exchanges may be freed
    throw;
  }
  for (Peer &peer : peers) {
    if (!peer.ended || !peer.ended->isOver() || !peer.isNeeded())
      continue;
    std::string reason = "the connection of rank " + std::to_string(getRank()) +
                         " with rank " + std::to_string(peer.rank) +
                         " has ended";
    abort(reason);
    throw AbortedError(reason);
  }
}

void TcpExchanger::abort(const std::string &reason) {
  isGivenUp = true;
  rendezvous.abort(reason);
}
