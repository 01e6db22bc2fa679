//===- WatchedCall.h - Calls that wait for other ranks ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL connects ranks, splits communicators and registers windows in calls that
// return when all ranks have made them, or never. NCCL's own remedy, a
// communicator that doesn't block, would start a thread for each collective.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_NCCL_WATCHEDCALL_H
#define TPRT_LIB_COMM_NCCL_WATCHEDCALL_H

#include <functional>

namespace tprt::cuda {

/// Runs `call` in a thread of its own, and throws what it throws. Meanwhile
/// `poll` is called at least every 50 ms; if it throws, the call is given up,
/// and its thread is left behind. So `call` must own all that it uses.
void runWatched(std::function<void()> call, const std::function<void()> &poll);

} // namespace tprt::cuda

#endif // TPRT_LIB_COMM_NCCL_WATCHEDCALL_H
