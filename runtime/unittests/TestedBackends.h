//===- TestedBackends.h - The backends that are tested ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CollectiveTest.cpp and CommunicatorTest.cpp are linked with one place of the
// ranks' memory after the other: the host, a device that all share, a device
// for each.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_UNITTESTS_TESTEDBACKENDS_H
#define TPRT_UNITTESTS_TESTEDBACKENDS_H

#include "tprt/Backends.h"

namespace tprt::test {

/// Whether the backend's ranks can be in this place.
bool canBeHere(const Backend &backend);

/// Backends for this place that aren't in the table.
std::vector<const Backend *> getBackendsOfTests();

/// Those, and the backends of this machine that can be here. If a launcher that
/// a backend requires has started this process, only that backend, so that its
/// tests run in all processes alike.
std::vector<const Backend *> getBackendsHere();

/// The sizes of worlds to test: that of the job, if a launcher has started it.
std::vector<int64_t> getWorldSizes(const Backend &backend);

/// A rank's device; null on the host.
Device *getDevice(int64_t rank);

/// A communicator for each rank of this process, whose thread uses it: for all
/// ranks, unless a launcher has started their processes.
std::vector<std::unique_ptr<Communicator>>
makeCommunicators(const Backend &backend, const Manifest &manifest,
                  const CommunicatorOptions &options);

/// communicator.run() on copies of the host's buffers, which may be one.
int64_t runCollective(Communicator &communicator, int64_t id,
                      const std::byte *src, int64_t srcBytes, std::byte *dst,
                      int64_t dstBytes);

/// A collective of a rank, and its operand and result in the host's memory.
struct Call {
  int64_t id;
  const std::byte *src;
  int64_t srcBytes;
  std::byte *dst;
  int64_t dstBytes;
};

/// communicator.start() for each of these on copies of the host's buffers, then
/// wait() in the order that `order` lists them in, behind each of which its
/// operand is overwritten. The bytes received, by call.
std::vector<int64_t> startCollectives(Communicator &communicator,
                                      const std::vector<Call> &calls,
                                      const std::vector<size_t> &order);

/// Whether the backends here reduce elements of the type.
bool canReduce(Reduction reduction, Dtype dtype);

/// How often a test tries what only goes wrong now and then.
extern const int numRounds;

} // namespace tprt::test

#endif // TPRT_UNITTESTS_TESTEDBACKENDS_H
