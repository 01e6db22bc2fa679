//===- Work.h - What the fake libraries enqueue -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FAKE_WORK_H
#define TPRT_FAKE_WORK_H

#include "Fake.h"
#include "cuda/Driver.h"

#include <functional>
#include <mutex>

namespace tprt::fake {

/// A lock of everything.
std::recursive_mutex &getMutex();

using Lock = std::lock_guard<std::recursive_mutex>;

/// What a program has made and not destroyed. At the end of the process it is a
/// leak, unless something failed or hung: then it may be left behind.
void addLive(void *object);
void removeLive(void *object);

/// Notes a call. Returns the status that the call is to fail with, or 0.
int32_t note(const std::string &function, const std::string &details = "");

/// What a stream does at some time: returns false where it has to be tried
/// again later, as it waits for somebody else.
using Work = std::function<bool()>;
void enqueue(cuda::CUstream stream, Work work);

/// "stream 2", in the order in which they were made.
std::string describe(cuda::CUstream stream);

/// Whether [address, address + bytes) is in one allocation of the device. Where
/// it isn't, all later calls of the driver fail.
bool checkMemory(const void *address, size_t bytes);

/// Memory of the device, filled with garbage; null where there is none left.
/// releaseMemory() returns false for what isn't such memory.
void *allocateMemory(size_t bytes, size_t alignment);
bool releaseMemory(void *memory);

/// Marks the device as failed: what is enqueued doesn't run.
void setFailed(int32_t status);

} // namespace tprt::fake

#endif // TPRT_FAKE_WORK_H
