//===- Profile.h - Where the time goes --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_PROFILE_H
#define TPRT_PROFILE_H

#include "tprt/Machine.h"
#include "tprt/Recording.h"

namespace tprt {

/// What one kind of work in one module took. Everything per run and rank: the
/// mean over both.
struct ProfileRow {
  std::string fqn;
  std::string op;   ///< the model's ops, "add+rms_norm"; none for collectives
  std::string kind; ///< "kernel", "gemm", "all_reduce", …
  double calls = 0;
  double seconds = 0; ///< without what went on beside computation
  double waiting = 0; ///< of the seconds: until the last rank came
  double flops = 0;
  double bytes = 0; ///< touched, or received
  /// What a machine at its limits would have taken, if one is given.
  std::optional<double> limit;
};

struct Profile {
  int64_t numRuns = 0;
  double seconds = 0;           ///< of a run
  std::vector<ProfileRow> rows; ///< most time first

  /// Throws an execution error where the recording isn't of this program.
  TPRT_API Profile(const Manifest &manifest, const Recording &recording,
                   const Machine *machine = nullptr);

  /// For people: a line per row; modules that differ in numbers alone, as
  /// layers do, share one, with '*' for the number.
  TPRT_API std::string toTable() const;
};

} // namespace tprt

#endif // TPRT_PROFILE_H
