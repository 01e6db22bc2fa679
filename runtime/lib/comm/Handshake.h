//===- Handshake.h - How the processes of a job find each other -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_HANDSHAKE_H
#define TPRT_LIB_COMM_HANDSHAKE_H

#include "comm/Sockets.h"
#include "tprt/Job.h"

namespace tprt {

/// Rank 0's part: listens where the job says, and returns the connections with
/// all others, by rank. Whoever connects and isn't one of the job's ranks is
/// dropped. Throws an execution error where ranks are missing after `timeout`
/// (zero: never), or have ended; an input error where others than this host's
/// could connect, and there is no token.
std::vector<Socket> admitRanks(const Job &job,
                               std::chrono::milliseconds timeout);

/// Another rank's part: its connection with rank 0. Throws the same errors.
Socket joinRankZero(const Job &job, std::chrono::milliseconds timeout);

/// "127.0.0.1:29555": where the ranks meet.
std::string describePlace(const Job &job);

/// "rank 1 was ended by signal 9 (Killed)", if its launcher knows that it has
/// ended otherwise than well.
std::optional<std::string> describeEnd(const Job &job, int64_t rank);

/// The same for a rank whose connection has ended without a word, of which the
/// launcher may learn in a moment: "rank 1 has left", if it doesn't.
std::string describeLoss(const Job &job, int64_t rank);

} // namespace tprt

#endif // TPRT_LIB_COMM_HANDSHAKE_H
