//===- Recording.h - Times of ranks' work -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   tprt::Recording recording;
//   session.run(inputs, {.repeat = 10, .recording = &recording});
//   tprt::makeTrace(session.getManifest(), recording);    // for Perfetto
//   tprt::Profile profile(session.getManifest(), recording);
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_RECORDING_H
#define TPRT_RECORDING_H

#include "tprt/Manifest.h"

#include <algorithm>

namespace tprt {

/// A stretch of a rank's time.
struct Slice {
  enum class Kind {
    Run,       ///< one call of the program
    Op,        ///< generated code or a library call: Manifest::ops
    Collective ///< with waiting for the others: Manifest::collectives
  };
  Kind kind;
  int64_t index;     ///< of the run, the op or the collective
  int64_t run;       ///< the run that it is in
  int64_t begin = 0; ///< nanoseconds of a clock that all ranks share
  int64_t end = 0;
  int64_t bytes = 0; ///< of collectives: received from other ranks
  /// For a collective that overlaps computation: the time when the rank had
  /// nothing else to do and began to wait for its end. The collective may have
  /// ended before.
  std::optional<int64_t> waited = {};

  /// Nanoseconds in which the rank did nothing else.
  int64_t getDuration() const {
    return std::max<int64_t>(0, end - waited.value_or(begin));
  }
};

/// The work of all ranks, run by run.
struct Recording {
  int64_t numRuns = 0;
  /// Slices by rank, ordered by their ends. Empty for ranks of other processes.
  std::vector<std::vector<Slice>> ranks;
};

/// A trace in the JSON format of Chrome and Perfetto: a process per rank, a
/// track for computation and one for communication, and arrows that join the
/// ranks' slices of each collective. Throws an execution error if the recording
/// isn't of this program.
TPRT_API std::string makeTrace(const Manifest &manifest,
                               const Recording &recording);

} // namespace tprt

#endif // TPRT_RECORDING_H
