//===- Communication.h - How the ranks of a process communicate -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_COMMUNICATION_H
#define TP_TOOLS_TP_RUN_COMMUNICATION_H

#include "CommandLine.h"

/// The backend that --comm names or that fits the program and the environment;
/// and the job that this process is a rank of, from `tp-run -n` or from the
/// environment. nullopt if all ranks are threads of this process.
std::pair<const tprt::Backend &, std::optional<tprt::Job>>
chooseBackend(const Options &options, const tprt::Manifest &manifest);

/// Throws an input error if --checksum is given, and the backend's messages
/// can't carry checksums.
void checkChecksums(const Options &options, const tprt::Backend &backend);

/// Divides the cores that several processes of the job may use among these
/// processes. If there are fewer, each gets one. All processes call it, before
/// they make threads.
void shareCores(const tprt::Job &job, tprt::Connection &connection);

/// If a launcher that a backend requires has started this process as one of
/// several, its messages begin with its rank.
void nameRankInMessages();

/// Once the processes of a job are connected, rank 0 prints for all, unless
/// `tp-run -n` collects their messages.
void leaveMessagesToRankZero(const tprt::Job &job);

/// The error has been reported.
struct Reported {
  int exitCode;
};

/// After a failure in a job: tells the other ranks, and reports the error, in
/// one of them. Then throws Reported. If `tp-run -n` collects the messages,
/// returns instead.
void endJob(const tprt::Job &job, tprt::Connection &connection,
            const std::exception &error);

/// Calls `body` with the communication of this process's ranks.
template <typename Body>
auto withCommunication(const Options &options, const tprt::Manifest &manifest,
                       Body body) {
  auto [backend, job] = chooseBackend(options, manifest);
  checkChecksums(options, backend);
  if (!job)
    return body(Communication{backend});
  job->checksum = options.checksum;
  tprt::Connection connection(backend, *job, getTimeout(options));
  leaveMessagesToRankZero(*job);
  try {
    tprt::checkNumProcesses(manifest, *job);
    if (!manifest.isForCuda && !options.noPin)
      shareCores(*job, connection);
    return body(Communication{backend, &*job, &connection});
  } catch (const std::exception &error) {
    endJob(*job, connection, error);
    throw;
  }
}

#endif // TP_TOOLS_TP_RUN_COMMUNICATION_H
