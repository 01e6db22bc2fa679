//===- TcpExchanger.h - Bytes between processes by TCP ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each pair of ranks has a connection. A message is a head, which has the label
// and the size of an exchange's part, and the part's bytes. They go directly
// from and to the memory of the exchange; bytes that come before the receiver
// has started their exchange wait in memory of their own. So no rank has to
// wait until another one has started the same exchange.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_TCP_TCPEXCHANGER_H
#define TPRT_LIB_COMM_TCP_TCPEXCHANGER_H

#include "comm/Exchanger.h"
#include "comm/Rendezvous.h"
#include "support/Patience.h"

#include <atomic>
#include <deque>
#include <list>
#include <optional>

namespace tprt::tcp {

/// Moves bytes while it is called. The rendezvous tells ranks of each other's
/// failures.
class TcpExchanger final : public Exchanger {
public:
  /// Connects to all other ranks. Throws what admitRanks and joinRank throw, and
  /// an AbortedError if another rank can't go on.
  TcpExchanger(Rendezvous &rendezvous, std::chrono::milliseconds timeout);

  int64_t getRank() const override { return rendezvous.getJob().rank; }
  int64_t getWorldSize() const override {
    return rendezvous.getJob().worldSize;
  }
  int64_t getNumLocalRanks() const override { return numLocal; }
  void connect(const std::vector<std::vector<int64_t>> &all) override {
    groups = all;
  }
  size_t start(const Exchange &exchange) override;
  bool test(size_t number) override;
  std::vector<int64_t> getAwaited(size_t number) override;
  std::string describeStopped() const override {
    return rendezvous.describeStopped();
  }
  void poll() override;
  void abort(const std::string &reason) override;
  void setActivity(std::function<std::string()> describe) override {
    rendezvous.setActivity(std::move(describe));
  }

private:
  /// Precedes a part.
  struct Head {
    int64_t label;
    uint64_t bytes;
  };
  /// A part of an exchange that is under way. It isn't moved in memory.
  struct Transfer {
    int64_t rank;
    int64_t label;
    std::byte *data; ///< of a part that is sent, only read
    int64_t bytes;
    bool isDone = false;
  };
  struct Slot {
    bool isUsed = false;
    std::vector<Transfer> transfers;
  };
  /// A part that is sent.
  struct Outgoing {
    Transfer *transfer;
    Head head;
    size_t numSent = 0; ///< of the head and the part
  };
  /// A part that is received.
  struct Incoming {
    Head head = {};
    size_t numHead = 0;           ///< bytes of the head that are here
    Transfer *transfer = nullptr; ///< null: the exchange hasn't been started
    std::vector<std::byte> early; ///< then, its bytes that are here
    uint64_t numReceived = 0;

    bool hasHead() const { return numHead == sizeof(head); }
    bool isComplete() const { return hasHead() && numReceived == head.bytes; }
  };
  struct Peer {
    Peer(int64_t rank, Socket socket) : rank(rank), socket(std::move(socket)) {}

    int64_t rank;
    Socket socket;
    /// Set when the connection has ended, for the wait for the reason.
    std::optional<Patience> ended;
    std::deque<Outgoing> outgoing;
    std::deque<Transfer *> awaited =
        {}; ///< in the order in which they were started
    /// Those that are early, and the last one.
    std::list<Incoming> incoming;

    /// Whether an exchange waits for it.
    bool isNeeded() const {
      return !outgoing.empty() || !awaited.empty() ||
             (!incoming.empty() && incoming.back().transfer);
    }
  };

  std::vector<Socket> meet(std::chrono::milliseconds timeout);
  void moveAll();
  void send(Peer &peer);
  void receive(Peer &peer);
  Transfer *takeAwaited(Peer &peer, const Head &head);
  void checkSize(const Transfer &transfer, const Head &head) const;
  ptrdiff_t readPart(Peer &peer, Incoming &part);

  Rendezvous &rendezvous;
  int64_t numLocal = 1;
  std::vector<std::vector<int64_t>> groups;
  std::deque<Slot> slots;
  std::vector<Peer> peers;         ///< without this rank
  std::vector<size_t> peerNumbers; ///< by rank
  std::vector<pollfd> entries;     ///< by peer
  std::atomic<bool> isGivenUp = false;
};

} // namespace tprt::tcp

#endif // TPRT_LIB_COMM_TCP_TCPEXCHANGER_H
