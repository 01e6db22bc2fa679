//===- Communicator.h - Data exchange between ranks -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one interface between a running program and a backend. A backend is a
// class derived from Communicator and a function that makes its objects; the
// session, the counters and the programs don't know which backend runs.
// docs/Extending.md shows how to add one.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_COMMUNICATOR_H
#define TPRT_COMMUNICATOR_H

#include "tprt/Manifest.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tprt {

class Device;
class Stream;

/// Thrown in the ranks that leave because another one failed; what() is the
/// failure.
class TPRT_API AbortedError : public Error {
public:
  /// `kind` is that of the failure.
  explicit AbortedError(const std::string &reason,
                        ErrorKind kind = ErrorKind::Execution)
      : Error(kind, reason) {}
};

/// One rank's end of the communication. Used by this rank's thread only, except
/// abort(). That thread may be another one in each run, see
/// SessionOptions::usesCaller.
class TPRT_API Communicator {
public:
  virtual ~Communicator();

  virtual int64_t getRank() const = 0;

  /// Runs collective `id`: reads the operand at `src`, writes the result at
  /// `dst`. src == dst is allowed if this rank's operand and result have the
  /// same shape. On return `dst` is complete and `src` may be overwritten; on a
  /// device, this holds for work that is enqueued later. Returns the bytes
  /// received from other ranks, counted where they are copied. Throws
  /// AbortedError.
  virtual int64_t run(int64_t id, const std::byte *src, std::byte *dst) = 0;

  /// Starts collective `id`, for which Collective::isStarted must be set. `src`
  /// and `dst` are in use until wait() returns for it. src == dst is allowed in
  /// an all_reduce. Other collectives may be run, started and waited for in
  /// between. All ranks start collectives in the same order, but may wait for
  /// them in any order. A rank may run a collective that others start. Throws
  /// AbortedError.
  virtual void start(int64_t id, const std::byte *src, std::byte *dst);

  /// Waits for a collective that start() has begun. Like run(), returns the
  /// bytes received. Throws AbortedError.
  virtual int64_t wait(int64_t id);

  /// The stream that collective `id` runs on once it is started. Null on the
  /// host, where starts enqueue nothing.
  virtual Stream *getStream(int64_t id) {
    (void)id;
    return nullptr;
  }

  /// Allocates `bytes` bytes for the rank's arena, which holds most operands
  /// and results. Returns null if the backend needs no special kind of memory.
  /// Called before all other functions.
  virtual std::shared_ptr<std::byte> allocate(int64_t bytes);

  /// Called with the arena after each run until it returns true. From then on
  /// runs may be captured. All ranks call it and get the same result. Throws
  /// AbortedError.
  virtual bool warmUp(std::byte *arena, int64_t bytes);

  /// Describes how data move, for reports: "NCCL 2.28.9, window buffers".
  /// May be empty.
  virtual std::string getDescription() const;

  /// How far this rank's device has come: "rank 0 is in or after collective 3
  /// (all_reduce of 'mlp.down')". Empty if the backend doesn't know.
  virtual std::string describeActivity() const;

  /// Called from time to time while the rank waits for its device. Throws if
  /// something has failed in the meantime.
  virtual void poll() {}

  /// Throws an error in all ranks if not all of them give the same value.
  /// `what` is what is agreed on, for the error. If all ranks are in one
  /// process, which has given them the value, there is nothing to do.
  virtual void agree(const std::string &what, const std::string &value);

  /// The same for several values, each with what it is. Costs one exchange() if
  /// all are the same.
  using NamedValues = std::vector<std::pair<std::string, std::string>>;
  void agreeOnAll(const NamedValues &values);

  /// Returns each rank's contribution, of at most `limit` bytes, by rank. All
  /// ranks call it, between runs. Throws AbortedError. The default throws an
  /// execution error, that the backend can't do this.
  virtual std::vector<std::string> exchange(const std::string &mine,
                                            size_t limit);

  /// Waits for all ranks of the world. Throws AbortedError.
  virtual void barrier() = 0;

  /// Makes all ranks leave their waits, now and later, with an AbortedError of
  /// this reason. The first reason wins.
  virtual void abort(const std::string &reason) = 0;

  /// Says that this rank makes no more calls. A rank that waits for it later
  /// gets an error at once.
  virtual void finish() = 0;

protected:
  /// agree() of backends whose ranks are processes.
  void agreeByExchange(const std::string &what, const std::string &value);

private:
  std::map<int64_t, int64_t> received; ///< for collectives that start() has run
};

struct CommunicatorOptions {
  /// How long a rank may wait for the others before the job is ended with a
  /// report of which ranks wait where. Zero: forever.
  std::chrono::milliseconds timeout{120'000};
  /// Whether each message of a collective carries a checksum, where ranks that
  /// are processes of the host exchange messages: by MPI, or by a Transport. A
  /// message that isn't what was sent makes the run fail. All processes have the
  /// same value.
  bool checksum = false;
  /// Where the ranks compute; set by the session. Null: on the host.
  Device *device = nullptr;
};

/// Makes the communicators of the ranks that this process hosts. The manifest
/// must outlive them.
using CommunicatorFactory =
    std::function<std::vector<std::unique_ptr<Communicator>>(
        const Manifest &, const CommunicatorOptions &)>;

} // namespace tprt

#endif // TPRT_COMMUNICATOR_H
