//===- Launch.h - Ranks that are processes ------------------------*- C++
//-*-===//

#ifndef TP_RUN_LAUNCH_H
#define TP_RUN_LAUNCH_H

#include "CommandLine.h"

/// The job that this process is one rank of, by its environment and --comm;
/// none where all ranks are threads of this process.
std::optional<tprt::Job> findJob(const Options &options,
                                 const tprt::Manifest &manifest);

/// Starts `processes` copies of this process, each of which returns nothing and
/// goes on as one rank of a job. In this one it waits for them, and returns the
/// exit code: that of the first one that failed.
std::optional<int> startProcesses(int64_t processes);

/// Completes the result of a run: outputs, blocks and counts of all ranks. All
/// processes of the job call it.
void gatherResult(const tprt::Manifest &manifest, const tprt::Job &job,
                  tprt::Connection &connection, tprt::RunResult &result);

#endif // TP_RUN_LAUNCH_H
