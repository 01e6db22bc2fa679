//===- NcclCommunicator.h - Ranks on devices of their own -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_NCCL_NCCLCOMMUNICATOR_H
#define TPRT_LIB_COMM_NCCL_NCCLCOMMUNICATOR_H

#include "comm/Rendezvous.h"
#include "tprt/Communicator.h"

namespace tprt::cuda {

/// The communicator of rank `rank`, this process, which enqueues on its stream
/// of options.device. All processes of `rendezvous` call it. Throws an input
/// error if the program has another number of ranks or isn't for CUDA devices,
/// or if NCCL is missing.
std::unique_ptr<Communicator>
makeNcclCommunicator(const Manifest &manifest,
                     const CommunicatorOptions &options, int64_t rank,
                     int64_t worldSize, Rendezvous &rendezvous);

} // namespace tprt::cuda

#endif // TPRT_LIB_COMM_NCCL_NCCLCOMMUNICATOR_H
