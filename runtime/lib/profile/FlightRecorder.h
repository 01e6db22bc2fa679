//===- FlightRecorder.h - A rank's last collectives -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank's host did last, kept while it runs and written when a run fails,
// as the flight recorder of PyTorch's ProcessGroupNCCL does.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_PROFILE_FLIGHTRECORDER_H
#define TPRT_LIB_PROFILE_FLIGHTRECORDER_H

#include "tprt/Communicator.h"
#include "tprt/Manifest.h"

#include <array>

namespace tprt {

class FlightRecorder {
public:
  static constexpr size_t numKept = 64;

  void beginRun() { ++run; }
  /// The rank enters collective `id`, to run it or to start it.
  void begin(int64_t id) {
    entries[numBegun++ % numKept] = {id, run, now(), /*end=*/0, /*bytes=*/0};
  }
  /// The rank has its result.
  void end(int64_t id, int64_t bytes);

  /// Writes `flight-<rank>.json` into the directory, which is made if it
  /// doesn't exist; docs/Runtime.md describes the file. `error` is the run's.
  /// Throws an input error if the file can't be written.
  void write(const std::string &directory, const Manifest &manifest,
             const Communicator &communicator, const std::string &error) const;

private:
  struct Entry {
    int64_t id, run;
    int64_t begin, end; ///< nanoseconds since 1970; end 0: not yet
    int64_t bytes;      ///< received from other ranks
  };

  static int64_t now();

  std::array<Entry, numKept> entries;
  size_t numBegun = 0;
  int64_t run = 0; ///< counts from 1
};

} // namespace tprt

#endif // TPRT_LIB_PROFILE_FLIGHTRECORDER_H
