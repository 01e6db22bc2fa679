//===- Transport.h - Ranks that are processes on the host -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that embeds the runtime runs one rank of several with whatever
// moves bytes between its processes: it implements a Transport.
//
//   SessionOptions options;
//   options.backend = "gloo";
//   options.makeCommunicators =
//       tprt::makeFactory(std::make_shared<GlooTransport>());
//   options.ranks = {rank};
//
// Values are packed and reduced by the runtime, in group order, so each rank
// gets the same bits as with the `local` backend.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_TRANSPORT_H
#define TPRT_TRANSPORT_H

#include "tprt/Communicator.h"

namespace tprt {

/// Moves bytes between processes, each of which hosts one rank. Only the
/// thread of the rank calls it, except for getRank() and getWorldSize(). Where
/// the other processes can't go on, connect() and allToAll() end within a time
/// limit of the transport's own: they throw AbortedError with the reason that
/// another process has given to abort(), or an execution error.
class TPRT_API Transport {
public:
  virtual ~Transport();

  virtual int64_t getRank() const = 0;
  virtual int64_t getWorldSize() const = 0;

  /// Makes the groups whose indices allToAll() gets. Each is a list of ranks,
  /// ascending; the first one has all ranks. All processes make the same ones,
  /// also those that they aren't in. Called by the first run, and by the first
  /// one after a run that has failed.
  virtual void connect(const std::vector<std::vector<int64_t>> &groups) = 0;

  /// MPI_Alltoallv: sends sentBytes[i] bytes to member i of a group, itself
  /// included, and receives receivedBytes[i] bytes from it. In both memories,
  /// which don't overlap, the parts follow each other by member.
  virtual void allToAll(size_t group, const std::byte *sent,
                        const std::vector<int64_t> &sentBytes,
                        std::byte *received,
                        const std::vector<int64_t> &receivedBytes) = 0;

  /// Tells the other processes why this one makes no more calls until
  /// connect().
  virtual void abort(const std::string &reason) = 0;
};

/// For SessionOptions::makeCommunicators. The factory throws an input error if
/// the program has another number of ranks, or is for CUDA devices.
TPRT_API CommunicatorFactory makeFactory(std::shared_ptr<Transport> transport);

} // namespace tprt

#endif // TPRT_TRANSPORT_H
