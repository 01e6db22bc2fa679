//===- Report.h - What a program is, and what a run did ----------*- C++
//-*-===//

#ifndef TPRT_REPORT_H
#define TPRT_REPORT_H

#include "tprt/Session.h"

#include <string>

namespace tprt {

/// The runtime's version, "0.1.0".
TPRT_API std::string_view getVersion();

/// A summary of the manifest for people: inputs, parameters, outputs,
/// collectives.
TPRT_API std::string describe(const Manifest &manifest);

/// The report of a run as JSON, schema 1 (docs/Runtime.md): bytes and calls by
/// rank and collective, seconds, memory.
TPRT_API std::string makeRunReport(const std::string &artifactPath,
                                   const Session &session,
                                   const RunResult &result,
                                   const RunOptions &options);

} // namespace tprt

#endif // TPRT_REPORT_H
