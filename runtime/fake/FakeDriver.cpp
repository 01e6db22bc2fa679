//===- FakeDriver.cpp - libcuda without a device --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "State.h"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

static thread_local CUcontext current = nullptr;
/// The life of the primary context in which it became current. The context ends
/// when it isn't retained anymore.
static thread_local int64_t lifeOfCurrent = 0;

static CUresult checkContext() {
  if (!current)
    return INVALID_CONTEXT;
  if (lifeOfCurrent != getDevice().numLives)
    return CONTEXT_IS_DESTROYED;
  return CUDA_SUCCESS;
}

CUresult fake::enter(const std::string &function, const std::string &details) {
  if (int32_t status = note(function, details))
    return status;
  if (CUresult result = checkContext())
    return result;
  return getDevice().failure;
}

CUresult fake::beginFree(const std::string &function) {
  if (int32_t status = takeFault(function))
    return status;
  return checkContext();
}

bool fake::requireContext() {
  Lock lock(getMutex());
  CUresult result = checkContext();
  if (result != CUDA_SUCCESS)
    setFailed(result);
  return result == CUDA_SUCCESS;
}

EXPORT cuInit(unsigned) {
  Lock lock(getMutex());
  return note("cuInit");
}

EXPORT cuDriverGetVersion(int *version) {
  *version = getDevice().settings.driverVersion;
  return CUDA_SUCCESS;
}

static const std::pair<CUresult, const char *> names[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    {CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    {CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
};

EXPORT cuGetErrorName(CUresult result, const char **name) {
  *name = "CUDA_ERROR_UNKNOWN";
  for (auto [known, text] : names)
    if (known == result)
      *name = text;
  return CUDA_SUCCESS;
}

EXPORT cuGetErrorString(CUresult, const char **text) {
  *text = "as the fake device says";
  return CUDA_SUCCESS;
}

EXPORT cuDeviceGet(CUdevice *device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}

EXPORT cuDeviceGetCount(int *count) {
  *count = getDevice().settings.deviceCount;
  return *count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EXPORT cuDeviceGetName(char *name, int length, CUdevice) {
  std::snprintf(name, length, "fake device");
  return CUDA_SUCCESS;
}

EXPORT cuDeviceGetAttribute(int *value, int32_t attribute, CUdevice) {
  int32_t architecture = getDevice().settings.architecture;
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
    *value = architecture / 10;
  else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    *value = architecture % 10;
  else if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    *value = getDevice().settings.processors;
  else if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    *value = getDevice().settings.sharedBytes;
  else if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
    *value = 1 << 20;
  else
    return INVALID_VALUE;
  return CUDA_SUCCESS;
}

EXPORT cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  Lock lock(getMutex());
  *context = &getDevice().context;
  if (++getDevice().numRetained == 1)
    ++getDevice().numLives;
  return CUDA_SUCCESS;
}
EXPORT cuDevicePrimaryCtxRelease_v2(CUdevice) {
  Lock lock(getMutex());
  --getDevice().numRetained;
  return CUDA_SUCCESS;
}
EXPORT cuCtxSetCurrent(CUcontext context) {
  Lock lock(getMutex());
  current = context;
  lifeOfCurrent = getDevice().numLives;
  return CUDA_SUCCESS;
}
