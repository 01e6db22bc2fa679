//===- Profile.h - Profiles of a run ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_PROFILE_H
#define TPRT_PROFILE_H

#include "tprt/Machine.h"
#include "tprt/Recording.h"

namespace tprt {

/// The cost of one kind of work in one module. All numbers are means over runs
/// and ranks.
struct ProfileRow {
  std::string fqn;
  std::string op;   ///< the model's ops, "add+rms_norm"; none for collectives
  std::string kind; ///< "kernel", "gemm", "all_reduce", …
  double calls = 0;
  double seconds = 0; ///< without collectives' overlap with computation
  double waiting = 0; ///< the part of `seconds` until the last rank arrived
  double flops = 0;
  double bytes = 0; ///< touched, or received
  /// Seconds that a machine at its limits would take, if one is given.
  std::optional<double> limit;
};

struct Profile {
  int64_t numRuns = 0;
  double seconds = 0;           ///< of a run
  std::vector<ProfileRow> rows; ///< most time first

  /// Throws an execution error if the recording isn't of this program.
  TPRT_API Profile(const Manifest &manifest, const Recording &recording,
                   const Machine *machine = nullptr);

  /// A table for people, with a line per row. Modules whose names differ only
  /// in numbers, as layers do, share a line, with '*' for the number.
  TPRT_API std::string toTable() const;
};

} // namespace tprt

#endif // TPRT_PROFILE_H
