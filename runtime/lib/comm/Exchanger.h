//===- Exchanger.h - Bytes between processes of the host --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_EXCHANGER_H
#define TPRT_LIB_COMM_EXCHANGER_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tprt {

/// What a rank sends to the members of a group, itself included, and receives
/// from them. In both memories, which don't overlap, the parts follow each other
/// by member.
struct Exchange {
  size_t group;
  int64_t label; ///< the same at all members, another one for other data
  const std::byte *sent;
  const std::vector<int64_t> &sentBytes;
  std::byte *received;
  const std::vector<int64_t> &receivedBytes;
};

/// Moves bytes between processes, each of which hosts one rank. Several
/// exchanges may be under way; those of one label are started in the same order
/// by all members of a group. Used by one thread at a time, except abort().
class Exchanger {
public:
  virtual ~Exchanger() = default;

  virtual int64_t getRank() const = 0;
  virtual int64_t getWorldSize() const = 0;
  /// How many ranks share this host's cores, as far as is known.
  virtual int64_t getNumLocalRanks() const = 0;

  /// Makes the groups whose indices exchanges have. Each is a list of ranks,
  /// ascending; the first one has all ranks. All processes make the same ones.
  virtual void connect(const std::vector<std::vector<int64_t>> &groups) = 0;

  /// Starts an exchange, and returns its number. The memories are in use until
  /// test() has returned true for it.
  virtual size_t start(const Exchange &exchange) = 0;
  /// Whether the exchange is over; then its number may be used again.
  virtual bool test(size_t number) = 0;
  /// The ranks that the exchange waits for.
  virtual std::vector<int64_t> getAwaited(size_t number) = 0;

  /// "rank 1 is stopped by SIGSTOP", of all ranks that a launcher sees stopped;
  /// empty if there are none.
  virtual std::string describeStopped() const = 0;

  /// Called from time to time while the rank waits. Throws AbortedError if
  /// another process can't go on.
  virtual void poll() = 0;
  /// Tells the other processes why this one makes no more calls.
  virtual void abort(const std::string &reason) = 0;
  /// Sets the function that says what this rank is doing, for errors.
  virtual void setActivity(std::function<std::string()> describe) = 0;
};

} // namespace tprt

#endif // TPRT_LIB_COMM_EXCHANGER_H
