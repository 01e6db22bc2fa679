//===- WatchedCall.cpp - Calls that wait for other ranks ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/nccl/WatchedCall.h"

#include <chrono>
#include <future>
#include <thread>

using namespace tprt;

void cuda::runWatched(std::function<void()> call,
                      const std::function<void()> &poll) {
  std::packaged_task<void()> task(std::move(call));
  std::future<void> end = task.get_future();
  std::thread thread(std::move(task));
  try {
    while (end.wait_for(std::chrono::milliseconds(20)) !=
           std::future_status::ready)
      poll();
  } catch (...) {
    thread.detach();
    throw;
  }
  thread.join();
  end.get();
}
