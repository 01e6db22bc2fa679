//===- Handshake.h - Connections between the processes of a job -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_HANDSHAKE_H
#define TPRT_LIB_COMM_HANDSHAKE_H

#include "comm/Sockets.h"
#include "tprt/Job.h"

#include <functional>

namespace tprt {

/// A host's part, which is that of rank `job.rank`: listens at the job's
/// address, and returns the connections with all ranks above it, by rank.
/// Connections that aren't from the job's ranks are dropped. Throws an execution
/// error if ranks are missing after `timeout` (zero: never) or have ended.
/// Throws an input error if other hosts could connect and there is no token.
/// Calls `look`, which may throw, from time to time.
std::vector<Socket> admitRanks(
    const Job &job, std::chrono::milliseconds timeout,
    const std::function<void()> &look = [] {});

/// The part of rank `job.rank`: its connection with rank `host`, which is below
/// it and listens at the job's address. Throws the same errors.
Socket joinRank(
    const Job &job, int64_t host, std::chrono::milliseconds timeout,
    const std::function<void()> &look = [] {});

/// "127.0.0.1:29555": the job's address and port.
std::string describePlace(const Job &job);

/// "rank 1 was ended by signal 9 (Killed)", if its launcher knows that it has
/// ended with a failure.
std::optional<std::string> describeEnd(const Job &job, int64_t rank);

/// The same for a rank whose connection has ended without a reason. Waits a
/// moment for the launcher to notice; if it doesn't, "rank 1 has left".
std::string describeLoss(const Job &job, int64_t rank);

} // namespace tprt

#endif // TPRT_LIB_COMM_HANDSHAKE_H
