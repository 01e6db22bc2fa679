//===- Communicator.h - How ranks exchange data -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one interface between a running program and a backend. A backend is a
// class derived from Communicator and a CommunicatorFactory; the session, the
// counters and the programs don't know which one runs. docs/Runtime.md shows
// how to add one (MPI, NCCL).
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_COMMUNICATOR_H
#define TPRT_COMMUNICATOR_H

#include "tprt/Manifest.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>

namespace tprt {

class Device;

/// Thrown in the ranks that leave because another one failed; what() is the
/// failure.
class TPRT_API AbortedError : public Error {
public:
  explicit AbortedError(const std::string &reason)
      : Error(ErrorKind::Execution, reason) {}
};

/// One rank's end of the communication. Used by this rank's thread only, except
/// abort().
class TPRT_API Communicator {
public:
  virtual ~Communicator();

  virtual int64_t getRank() const = 0;

  /// Runs collective `id`: reads the operand at `src`, writes the result at
  /// `dst`; src == dst is allowed where this rank's have one shape. On return
  /// `dst` is complete and `src` may be overwritten; on a device, for what is
  /// enqueued later. Returns the bytes received from other ranks, counted where
  /// they are copied. Throws AbortedError.
  virtual int64_t run(int64_t id, const std::byte *src, std::byte *dst) = 0;

  /// Starts collective `id`, one that Collective::isStarted: `src` and `dst`
  /// are in use until wait() returns for it; src == dst is allowed in an
  /// all_reduce. Other collectives may be run, started and waited for in
  /// between. Ranks start collectives in one order, and wait for each in any.
  /// A rank may run one that others start. Throws AbortedError.
  virtual void start(int64_t id, const std::byte *src, std::byte *dst);

  /// Waits for what start() has begun, and returns the bytes received, both as
  /// run(). Throws AbortedError.
  virtual int64_t wait(int64_t id);

  /// Memory of `bytes` bytes for the rank's arena, which most operands and
  /// results are in, where the backend wants it of a kind of its own; null:
  /// any will do. Called before all others.
  virtual std::shared_ptr<std::byte> allocate(int64_t bytes);

  /// Called after the first run, with its arena, and after each further one
  /// until it returns true: then runs may be captured. All ranks call it, and
  /// get the same. Throws AbortedError.
  virtual bool warmUp(std::byte *arena, int64_t bytes);

  /// What is worth knowing of how data move, for reports: "NCCL 2.28.9,
  /// symmetric buffers". Empty: nothing.
  virtual std::string getDescription() const;

  /// Where this rank's device is, if the backend knows: "rank 0 is in or
  /// after collective 3 (all_reduce of 'mlp.down')". Empty if it doesn't know.
  virtual std::string describeActivity() const;

  /// Called from time to time while the rank waits for its device. Throws what
  /// has gone wrong meanwhile.
  virtual void poll() {}

  /// Waits for all ranks of the world. Throws AbortedError.
  virtual void barrier() = 0;

  /// Makes all ranks leave their waits, now and later, with an AbortedError of
  /// this reason. The first reason wins.
  virtual void abort(const std::string &reason) = 0;

  /// Says that this rank calls nothing more: whoever waits for it later has an
  /// error at once.
  virtual void finish() = 0;

private:
  std::map<int64_t, int64_t> received; ///< by what was started here
};

struct CommunicatorOptions {
  /// How long a rank may wait for the others before the job is ended with a
  /// report of who waits where. Zero: forever.
  std::chrono::milliseconds timeout{120'000};
  /// Where the ranks compute; set by the session. Null: on the host.
  Device *device = nullptr;
};

/// Makes the communicators of the ranks that this process hosts. The manifest
/// outlives them.
using CommunicatorFactory =
    std::function<std::vector<std::unique_ptr<Communicator>>(
        const Manifest &, const CommunicatorOptions &)>;

/// The `local` backend: all ranks are threads of this process and read each
/// other's operands in place. Reductions run in group order, so every rank gets
/// the same bits in every run.
TPRT_API std::vector<std::unique_ptr<Communicator>>
makeLocalCommunicators(const Manifest &manifest,
                       const CommunicatorOptions &options);

} // namespace tprt

#endif // TPRT_COMMUNICATOR_H
