//===- LocalCommunicator.h - Ranks as threads of one process ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LOCALCOMMUNICATOR_H
#define TPRT_LOCALCOMMUNICATOR_H

#include "tprt/Communicator.h"

namespace tprt {

/// The `local` backend: all ranks are threads of this process and read each
/// other's operands in place. Reductions run in group order, so every rank gets
/// the same bits in every run.
TPRT_API std::vector<std::unique_ptr<Communicator>>
makeLocalCommunicators(const Manifest &manifest,
                       const CommunicatorOptions &options);

} // namespace tprt

#endif // TPRT_LOCALCOMMUNICATOR_H
