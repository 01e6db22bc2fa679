//===- Report.h - Descriptions of programs and of runs ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_REPORT_H
#define TPRT_REPORT_H

#include "tprt/Profile.h"
#include "tprt/Session.h"

#include <string>

namespace tprt {

/// The runtime's version, "0.1.0".
TPRT_API std::string_view getVersion();

/// A summary of the manifest for people: parameters, and each program's inputs,
/// outputs and collectives.
TPRT_API std::string describe(const Manifest &manifest);

/// The durations of runs, in seconds. Percentile p is the shortest time that p
/// percent of the runs don't exceed.
struct Timing {
  int64_t numRuns;
  double min, median, p90, p99, max;
  /// Why the percentiles say little; empty if they can be trusted.
  std::string note;
};

/// `seconds` of at least one run.
TPRT_API Timing summarize(const std::vector<double> &seconds);

/// "20 runs: median 1.21 ms, min 1.2 ms, p90 …", and the note in a line of its
/// own.
TPRT_API std::string describe(const Timing &timing);

/// A line each: "attention by cuDNN 9.19.0, 12 calls: bf16, 24 heads, …".
TPRT_API std::string describe(const std::vector<AttentionUse> &uses);

/// The report of a run as JSON, schema 1 (docs/Runtime.md): bytes and calls by
/// rank and collective, seconds, memory, what computes attention, and the
/// profile, if one is given.
TPRT_API std::string makeRunReport(const std::string &artifactPath,
                                   const Session &session,
                                   const RunResult &result,
                                   const RunOptions &options,
                                   const Profile *profile = nullptr);

} // namespace tprt

#endif // TPRT_REPORT_H
