//===- Work.h - Work that the fake libraries enqueue ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FAKE_WORK_H
#define TPRT_FAKE_WORK_H

#include "Fake.h"
#include "cuda/Driver.h"

#include <chrono>
#include <functional>
#include <mutex>

namespace tprt::fake {

/// The mutex that guards all state.
std::recursive_mutex &getMutex();

using Lock = std::lock_guard<std::recursive_mutex>;

/// Tracks objects that a program has made and not destroyed. At the end of the
/// process they are leaks, unless something failed or hung.
void addLive(void *object);
void removeLive(void *object);

/// Notes a call. Returns the status that the call must fail with, or 0.
int32_t note(const std::string &function, const std::string &details = "");
/// The same without noting it.
int32_t takeFault(const std::string &function);

/// Whether this thread has a context, which a library on top of the driver needs
/// to make and to destroy what it has on the device. If not, all later calls of
/// the driver fail.
bool requireContext();

/// Work of a stream. Returns false if it must be tried again later, because it
/// waits for something else.
using Work = std::function<bool()>;
void enqueue(cuda::CUstream stream, Work work);

/// Called by work: to events, it takes so much more time than it really does.
void addTime(std::chrono::nanoseconds time);

/// "stream 2", in the order in which they were made.
std::string describe(cuda::CUstream stream);

/// Whether [address, address + bytes) is in one allocation of the device. If
/// not, all later calls of the driver fail.
bool checkMemory(const void *address, size_t bytes);

/// Allocates memory of the device, filled with garbage. Returns null if none is
/// left. releaseMemory() returns false if `memory` isn't such memory.
void *allocateMemory(size_t bytes, size_t alignment);
bool releaseMemory(void *memory);

/// Marks the device as failed: enqueued work doesn't run.
TPRT_FAKE_API void setFailed(int32_t status);

} // namespace tprt::fake

#endif // TPRT_FAKE_WORK_H
