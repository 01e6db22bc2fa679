//===- Snapshot.h - Checkpoints written beside the steps --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scheme of CheckFreq (Mohan et al., FAST 2021) and of PyTorch's
// torch.distributed.checkpoint.async_save: a training waits for a copy of its
// parameters, and goes on while the copy is written.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_TRAIN_SNAPSHOT_H
#define TPRT_LIB_TRAIN_SNAPSHOT_H

#include "tprt/Checkpoint.h"

#include <future>

namespace tprt {

/// The global values of all parameters, in this process's memory.
using Snapshot = TensorMap;

/// Copies them, with `numThreads` threads. Takes as many bytes as a checkpoint
/// has.
Snapshot takeSnapshot(const Manifest &manifest,
                      const GetParameter &getParameter, int64_t numThreads);

/// Writes `snapshot` as the checkpoint of `step`, in a thread of its own that
/// has the lowest priority, and frees it. Then keeps only the last `keep`
/// checkpoints; 0: all. Returns the checkpoint's path. Errors name the
/// step. The future's destructor waits for
/// the thread. `directory` and `manifest` must outlive it, and nothing else may
/// write to the directory meanwhile.
std::future<std::string> writeSnapshot(CheckpointDirectory &directory,
                                       const Manifest &manifest,
                                       Snapshot snapshot, int64_t step,
                                       const DataState &data, int64_t keep);

} // namespace tprt

#endif // TPRT_LIB_TRAIN_SNAPSHOT_H
