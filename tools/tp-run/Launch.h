//===- Launch.h - Ranks that are processes ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_LAUNCH_H
#define TP_TOOLS_TP_RUN_LAUNCH_H

#include "CommandLine.h"

#include <variant>

/// The job that this process is one rank of: of `tp-run -n`, or by its
/// environment and --comm; none where all ranks are threads of this process.
std::optional<tprt::Job> findJob(const Options &options,
                                 const tprt::Manifest &manifest);

/// Starts this program anew, with one thread, unless it has been started so.
/// Call this before startProcesses, while nothing is lost by it.
void restartWithOneThread(char **argv);

/// Starts options.processes copies of this process, each of which gets a job
/// and goes on as one rank of it. In this one it waits for them, and returns
/// the exit code: that of the first one that failed. Whatever ends this process
/// or one of them, none is left: a rank ends with this process, and after a
/// failure the others have `endTime` to end on their own. A rank that is
/// stopped may be continued within the timeout.
std::variant<int, tprt::Job> startProcesses(const Options &options);

/// Calls `body` as a rank of the job, and tells the others where it throws.
template <typename Body>
auto runAsRank(const tprt::Job &job, tprt::Connection &connection, Body body) {
  try {
    return body();
  } catch (const tprt::AbortedError &) { // the others know
    throw;
  } catch (const std::exception &error) {
    connection.abort("rank " + std::to_string(job.rank) +
                     " failed: " + error.what());
    throw;
  }
}

/// Completes the result of a run at rank 0: outputs, blocks and counts of all
/// ranks. All processes of the job call it.
void gatherResult(const tprt::Manifest &manifest, const tprt::Job &job,
                  tprt::Connection &connection, tprt::RunResult &result);

#endif // TP_TOOLS_TP_RUN_LAUNCH_H
