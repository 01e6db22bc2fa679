//===- Launch.h - Ranks that are processes ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_LAUNCH_H
#define TP_TOOLS_TP_RUN_LAUNCH_H

#include "CommandLine.h"

#include <variant>

/// Restarts this program with one thread, unless it was already started that
/// way. Call this before startProcesses, while the process has no state to
/// lose.
void restartWithOneThread(char **argv);

/// Starts options.processes copies of this process, each of which gets a job
/// and goes on as one rank of it. In this process, waits for them and returns
/// the exit code, which is that of the first one that failed. No process is
/// left behind: ranks end with this process, and after a failure the other
/// ranks have `endTime` to end on their own. A stopped rank may be continued
/// within the timeout.
std::variant<int, tprt::Job> startProcesses(const Options &options);

/// Completes the result of a run at rank 0: outputs, blocks and counts of all
/// ranks. All processes of the job call it.
void gatherResult(const tprt::Manifest &manifest, const tprt::Job &job,
                  tprt::Connection &connection, tprt::RunResult &result);

#endif // TP_TOOLS_TP_RUN_LAUNCH_H
