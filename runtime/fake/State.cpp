//===- State.cpp - The fake device ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "State.h"

#include <algorithm>
#include <cstdlib>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

/// The settings from the environment.
static Settings makeSettings() {
  Settings settings;
  auto set = [](auto &value, const char *variable) {
    if (const char *text = std::getenv(variable))
      value = std::atoi(text);
  };
  set(settings.driverVersion, "TPRT_FAKE_DRIVER_VERSION");
  set(settings.blasVersion, "TPRT_FAKE_CUBLASLT_VERSION");
  set(settings.ncclVersion, "TPRT_FAKE_NCCL_VERSION");
  set(settings.deviceCount, "TPRT_FAKE_DEVICES");
  if (const char *text = std::getenv("TPRT_FAKE_NCCL_HANGS"))
    settings.hangingCall = text;
  return settings;
}

Device &fake::getDevice() {
  static auto &device = *[] { // outlives objects that free memory at exit
    auto *made = new Device;
    made->settings = makeSettings();
    return made;
  }();
  return device;
}

std::recursive_mutex &fake::getMutex() {
  static auto &mutex = *new std::recursive_mutex;
  return mutex;
}

void fake::addLive(void *object) {
  Lock lock(getMutex());
  getDevice().live.insert(object);
}

void fake::removeLive(void *object) {
  Lock lock(getMutex());
  getDevice().live.erase(object);
}

namespace {
/// Clears `live`, so that LeakSanitizer finds objects that weren't destroyed,
/// unless the device has failed or was given up.
struct AtExit {
  ~AtExit() {
    if (!getDevice().everFailed && getDevice().numRetained == 0)
      getDevice().live.clear();
  }
} atExit;
} // namespace

void fake::reset() {
  Lock lock(getMutex());
  Device &device = getDevice();
  device.settings = makeSettings();
  device.calls.clear();
  device.faults.clear();
  device.kernelsFail = device.kernelsHang = false;
  device.failure = CUDA_SUCCESS;
  device.maxPinned = 0;
  device.numQueries = 0;
}

std::vector<std::string> fake::getCalls() {
  Lock lock(getMutex());
  return getDevice().calls;
}

size_t fake::countCalls(const std::string &prefix) {
  Lock lock(getMutex());
  const std::vector<std::string> &calls = getDevice().calls;
  return std::count_if(
      calls.begin(), calls.end(),
      [&](const std::string &call) { return call.starts_with(prefix); });
}

void fake::failCall(const std::string &function, int32_t status, size_t skip) {
  Lock lock(getMutex());
  getDevice().faults.emplace(function, Fault{skip, status});
  getDevice().everFailed = true;
}

void fake::failKernels() {
  getDevice().kernelsFail = getDevice().everFailed = true;
}
void fake::hangKernels(bool hang) {
  Lock lock(getMutex());
  getDevice().kernelsHang = hang;
  getDevice().everFailed = true;
}
Settings &fake::getSettings() { return getDevice().settings; }

size_t fake::getNumObjects() {
  Lock lock(getMutex());
  return getDevice().live.size();
}

size_t fake::getNumQueries() {
  Lock lock(getMutex());
  return getDevice().numQueries;
}

size_t fake::getAllocatedBytes() {
  Lock lock(getMutex());
  return getDevice().allocated;
}

size_t fake::getMaxPinnedBytes() {
  Lock lock(getMutex());
  return getDevice().maxPinned;
}

int32_t fake::note(const std::string &function, const std::string &details) {
  Device &device = getDevice();
  device.calls.push_back(details.empty() ? function : function + " " + details);
  return takeFault(function);
}

int32_t fake::takeFault(const std::string &function) {
  Device &device = getDevice();
  for (auto [fault, end] = device.faults.equal_range(function); fault != end;
       ++fault)
    if (fault->second.skip-- == 0) {
      int32_t status = fault->second.status;
      device.faults.erase(fault);
      return status;
    }
  return 0;
}

bool fake::checkMemory(const void *address, size_t bytes) {
  Device &device = getDevice();
  auto begin = reinterpret_cast<uintptr_t>(address);
  auto found = device.allocations.upper_bound(begin);
  if (found != device.allocations.begin()) {
    --found;
    if (begin + bytes <= found->first + found->second)
      return true;
  }
  if (device.failure == CUDA_SUCCESS)
    std::fprintf(stderr, "fake device: %zu bytes at %p aren't allocated\n",
                 bytes, address);
  setFailed(ILLEGAL_ADDRESS);
  return false;
}

void fake::setFailed(int32_t status) {
  getDevice().everFailed = true;
  if (getDevice().failure == CUDA_SUCCESS)
    getDevice().failure = status;
}

std::string fake::describe(CUstream stream) {
  return "stream " + (stream ? std::to_string(stream->id) : "0");
}
