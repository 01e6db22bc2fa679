//===- Rank.h - State of one running rank -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_EXEC_RANK_H
#define TPRT_LIB_EXEC_RANK_H

#include "cpu/Gemm.h"
#include "device/Stream.h"
#include "profile/FlightRecorder.h"
#include "profile/Recorder.h"
#include "tprt/Communicator.h"
#include "tprt/Session.h"

/// The object that the program's first argument points to. Each rank's thread
/// has its own, for all programs. Collectives are numbered as in the manifest's
/// list.
struct tprt_rank {
  tprt_rank(const tprt::Manifest &manifest, tprt::Communicator &communicator,
            tprt::DeviceStream *stream = nullptr)
      : manifest(manifest), communicator(communicator), stream(stream),
        counts(manifest.collectives.size()),
        isUnderWay(manifest.collectives.size()) {}

  const tprt::Manifest &manifest;
  const tprt::Program *program = nullptr; ///< that runs
  tprt::Communicator &communicator;
  tprt::DeviceStream *stream;                ///< null on the host
  std::vector<tprt::CollectiveCount> counts; ///< by collective, of this run
  int64_t lastCollective = -1; ///< the one that is running or ran last
  bool isInCollective = false;
  std::vector<bool> isUnderWay; ///< by collective: started but not waited for
  tprt::GemmState gemm;
  std::optional<tprt::Recorder> recorder; ///< while a run is recorded
  tprt::FlightRecorder *flight = nullptr; ///< null: there is none

  // The first failure: set before the status that reports it is returned.
  std::string error;
  bool isAborted = false; ///< the failure is in another rank
};

#endif // TPRT_LIB_EXEC_RANK_H
