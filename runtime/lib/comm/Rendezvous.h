//===- Rendezvous.h - Meeting point of processes ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_RENDEZVOUS_H
#define TPRT_LIB_COMM_RENDEZVOUS_H

#include "comm/Messages.h"
#include "comm/Sockets.h"
#include "support/Patience.h"
#include "tprt/Job.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace tprt {

/// The processes of a job, one for each rank, connected to that of rank 0 by
/// TCP. For small and rare messages: identifiers, barriers, outputs, failures.
/// Used by one thread at a time, except abort(). All functions but the
/// constructor throw AbortedError if another rank has aborted, left or been
/// killed, if it sends something unexpected, or if it makes this one wait for
/// longer than `timeout` (zero: forever).
class Rendezvous {
public:
  /// Waits until all are connected. Throws like admitRanks and joinRank.
  Rendezvous(const Job &job, std::chrono::milliseconds timeout);
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;

  const Job &getJob() const { return job; }
  /// The address of this host in its connection with rank 0; of rank 0, in that
  /// with rank 1. There must be several ranks.
  std::string getOwnAddress() const;

  /// Returns each rank's contribution, of at most `limit` bytes, by rank.
  std::vector<std::string> exchange(const std::string &mine, uint64_t limit);

  /// The same, but only rank 0 gets the contributions.
  std::vector<std::string> gather(const std::string &mine, uint64_t limit);
  /// Returns rank 0's contribution on all ranks. They wait for it as long as
  /// rank 0's process shows that it is working.
  std::string broadcast(const std::string &mine, uint64_t limit);

  /// Throws if another rank has aborted, or left because of a failure.
  void poll();

  /// Tells the other ranks. Their next call throws an error of this kind.
  void abort(const std::string &reason,
             ErrorKind kind = ErrorKind::Execution) noexcept;

  /// See Connection.
  bool waitForRankZero(std::chrono::milliseconds limit) noexcept;
  void waitForOthers(std::chrono::milliseconds limit) noexcept;

  /// Sets the function that says what this rank is doing, "rank 0 is in
  /// collective 3 (…)", for the errors that this class throws. Null: none.
  void setActivity(std::function<std::string()> describe) {
    describeActivity = std::move(describe);
  }
  /// "rank 1 is stopped by SIGSTOP", for all ranks that a launcher sees
  /// stopped; empty if there are none.
  std::string describeStopped() const;

private:
  /// The other end of a connection.
  struct Peer {
    explicit Peer(Socket socket)
        : socket(std::move(socket)), reader([this](void *data, size_t bytes) {
            return this->socket.read(data, bytes);
          }) {}

    const Socket socket;
    MessageReader reader;
    bool hasLeft = false;  ///< after its work
    bool knowsWhy = false; ///< has sent or received why the job ends
    uint64_t numAlive = 0; ///< how often it has shown that it is working
    std::timed_mutex sending;
    bool isCut = false; ///< a message to it is incomplete, so none can follow
  };

  void watch();
  void watch(int64_t other);
  void watchFates();
  void wait(int64_t other, short events);
  std::string receive(int64_t other, uint64_t limit, bool whileAlive = false);
  void send(int64_t other, const std::string &text);
  enum class Sent { Whole, Late, Broken };
  /// Calls `look`, which may throw, from time to time.
  Sent trySend(Peer &peer, MessageKind kind, std::string_view text,
               std::chrono::milliseconds limit,
               const std::function<void()> &look);
  std::string readReason(int64_t other);
  bool hasEnded(Peer &peer) noexcept;
  void showLife();
  [[noreturn]] void fail(const std::string &reason,
                         ErrorKind kind = ErrorKind::Execution);
  [[noreturn]] void failGone(int64_t other);
  [[noreturn]] void failLate(int64_t other, const std::string &what);

  const Job job;
  const std::chrono::milliseconds timeout;
  std::vector<std::unique_ptr<Peer>> peers; ///< by rank; null: no connection
  std::function<std::string()> describeActivity;
  std::vector<Patience> failed; ///< by rank: since it has ended without a
                                ///< reason

  std::mutex mutex; ///< guards the members below
  std::condition_variable changed;
  bool isOver = false;
  std::thread life; ///< of rank 0: shows that it is working
};

} // namespace tprt

#endif // TPRT_LIB_COMM_RENDEZVOUS_H
