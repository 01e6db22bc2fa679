//===- Machine.h - The limits of a machine ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_MACHINE_H
#define TPRT_MACHINE_H

#include "tprt/Collective.h"

#include <map>

namespace tprt {

/// A machine as `tp-run --calibrate` describes it (docs/Prediction.md).
struct Machine {
  std::map<Dtype, double> flops; ///< FLOP/s of products, of one core
  double memoryBandwidth;        ///< bytes/s, of one core
  double sharedBandwidth;        ///< bytes/s, of all cores
  int64_t numCores;
  struct Link {
    CollectiveKind kind;
    int64_t ranks;
    double latency, bandwidth; ///< seconds, received bytes/s
  };
  std::vector<Link> collectives;

  /// Throws an input error if the file isn't one that --calibrate writes.
  TPRT_API static Machine read(const std::string &path);

  /// The least number of seconds that one of `numRanks` ranks needs to compute
  /// and to move data between memory and core. The ranks share the cores
  /// evenly.
  TPRT_API double getComputeLimit(double flops, double bytes, Dtype dtype,
                                  int64_t numRanks) const;
  /// Seconds of a collective over `groupSize` ranks in which each receives
  /// `bytes`; nullopt if the kind wasn't measured.
  TPRT_API std::optional<double> getCollectiveLimit(CollectiveKind kind,
                                                    double bytes,
                                                    int64_t groupSize) const;
};

} // namespace tprt

#endif // TPRT_MACHINE_H
