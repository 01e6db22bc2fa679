//===- Calibrate.h - Measurement of this machine ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_CALIBRATE_H
#define TPRT_CALIBRATE_H

#include "tprt/Error.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tprt {

struct CalibrationOptions {
  /// Numbers of ranks to measure collectives with, each at least 2.
  std::vector<int64_t> ranks = {2, 4, 8};
  /// Seconds that a single measurement may take.
  double secondsPerMeasurement = 0.03;
  /// Called with the name of the next measurement: "memory bandwidth".
  std::function<void(const std::string &)> onProgress = {};
};

/// Measures this machine with the `local` backend: memory bandwidth, products
/// of every float type, elementwise arithmetic, and latency and bandwidth of
/// every kind of collective. Returns a machine's description, JSON in the form
/// of docs/Prediction.md. Takes about a minute; nothing else should run
/// meanwhile.
TPRT_API std::string calibrate(const CalibrationOptions &options = {});

} // namespace tprt

#endif // TPRT_CALIBRATE_H
