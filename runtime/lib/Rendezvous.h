//===- Rendezvous.h - Where processes meet -----------------------*- C++
//-*-===//

#ifndef TPRT_LIB_RENDEZVOUS_H
#define TPRT_LIB_RENDEZVOUS_H

#include "tprt/Job.h"

#include <mutex>

namespace tprt {

/// The processes of a job, one for each rank, connected to that of rank 0 by
/// TCP. For what is small and rare: identifiers, barriers, outputs, failures.
/// Used by one thread at a time, except abort().
class Rendezvous {
public:
  /// Waits until all are connected. Throws an execution error when they don't
  /// come within `timeout` (zero: forever).
  Rendezvous(const Job &job, std::chrono::milliseconds timeout);
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;

  /// What each rank has handed in, by rank. Throws AbortedError when one has
  /// aborted or left.
  std::vector<std::string> exchange(const std::string &mine);

  /// The same for rank 0 alone; the others get nothing.
  std::vector<std::string> gather(const std::string &mine);
  /// What rank 0 has handed in, on all ranks, which wait for it for however
  /// long.
  std::string broadcast(const std::string &mine);

  /// Throws AbortedError when another one has aborted, or left by a failure.
  void poll();

  /// Tells the others, whose next call throws.
  void abort(const std::string &reason) noexcept;

private:
  void listen(const Job &job);
  void connect(const Job &job);
  bool trySend(int64_t peer, char kind, const std::string &text);
  void send(int64_t peer, const std::string &text);
  std::string receive(int64_t peer, std::chrono::milliseconds timeout);
  [[noreturn]] void fail(const std::string &reason);

  const int64_t rank, worldSize;
  const std::chrono::milliseconds timeout;
  std::vector<int> sockets; ///< by rank; rank 0's alone, but for rank 0
  std::mutex mutex;         ///< of sends
};

} // namespace tprt

#endif // TPRT_LIB_RENDEZVOUS_H
