//===- Driver.h - The CUDA driver -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions, types and constants of the driver API that the runtime uses,
// under the driver's names. They are part of its ABI and don't change.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_DRIVER_H
#define TPRT_LIB_CUDA_DRIVER_H

#include "cuda/DynamicLibrary.h"

namespace tprt::cuda {

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

using CUresult = int32_t;
using CUdevice = int32_t;
using CUdeviceptr = unsigned long long;
using CUcontext = CUctx_st *;
using CUmodule = CUmod_st *;
using CUfunction = CUfunc_st *;
using CUstream = CUstream_st *;
using CUevent = CUevent_st *;
using CUgraph = CUgraph_st *;
using CUgraphExec = CUgraphExec_st *;

/// The arguments of a copy of rows.
struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  int32_t srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  int32_t dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
};

enum : int32_t {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_NOT_READY = 600,

  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;

/// X(name, symbol, parameters): the symbols are the versions that the
/// declarations here describe, as NVIDIA's header chooses them by macros.
#define TPRT_CUDA_DRIVER_FUNCTIONS(X)                                          \
  X(cuInit, cuInit, (unsigned))                                                \
  X(cuDriverGetVersion, cuDriverGetVersion, (int *))                           \
  X(cuGetErrorName, cuGetErrorName, (CUresult, const char **))                 \
  X(cuGetErrorString, cuGetErrorString, (CUresult, const char **))             \
  X(cuDeviceGet, cuDeviceGet, (CUdevice *, int))                               \
  X(cuDeviceGetCount, cuDeviceGetCount, (int *))                               \
  X(cuDeviceGetName, cuDeviceGetName, (char *, int, CUdevice))                 \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *, int32_t, CUdevice))    \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                        \
    (CUcontext *, CUdevice))                                                   \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice))       \
  X(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext))                             \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx,                                    \
    (CUmodule *, const void *, unsigned, int32_t *, void **))                  \
  X(cuModuleUnload, cuModuleUnload, (CUmodule))                                \
  X(cuModuleGetFunction, cuModuleGetFunction,                                  \
    (CUfunction *, CUmodule, const char *))                                    \
  X(cuFuncSetAttribute, cuFuncSetAttribute, (CUfunction, int32_t, int))        \
  X(cuLaunchKernel, cuLaunchKernel,                                            \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
     unsigned, CUstream, void **, void **))                                    \
  X(cuMemGetInfo, cuMemGetInfo_v2, (size_t *, size_t *))                       \
  X(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                        \
  X(cuMemFree, cuMemFree_v2, (CUdeviceptr))                                    \
  X(cuMemHostAlloc, cuMemHostAlloc, (void **, size_t, unsigned))               \
  X(cuMemFreeHost, cuMemFreeHost, (void *))                                    \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                   \
    (CUdeviceptr, const void *, size_t, CUstream))                             \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                   \
    (void *, CUdeviceptr, size_t, CUstream))                                   \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                   \
    (CUdeviceptr, CUdeviceptr, size_t, CUstream))                              \
  X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *, CUstream))    \
  X(cuMemsetD8Async, cuMemsetD8Async,                                          \
    (CUdeviceptr, unsigned char, size_t, CUstream))                            \
  X(cuMemsetD16Async, cuMemsetD16Async,                                        \
    (CUdeviceptr, unsigned short, size_t, CUstream))                           \
  X(cuMemsetD32Async, cuMemsetD32Async,                                        \
    (CUdeviceptr, unsigned, size_t, CUstream))                                 \
  X(cuMemsetD2D32Async, cuMemsetD2D32Async,                                    \
    (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream))                 \
  X(cuStreamCreate, cuStreamCreate, (CUstream *, unsigned))                    \
  X(cuStreamDestroy, cuStreamDestroy_v2, (CUstream))                           \
  X(cuStreamQuery, cuStreamQuery, (CUstream))                                  \
  X(cuStreamSynchronize, cuStreamSynchronize, (CUstream))                      \
  X(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned))       \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, int32_t))        \
  X(cuStreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph *))             \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags,                           \
    (CUgraphExec *, CUgraph, unsigned long long))                              \
  X(cuGraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                     \
  X(cuGraphDestroy, cuGraphDestroy, (CUgraph))                                 \
  X(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec))                     \
  X(cuEventCreate, cuEventCreate, (CUevent *, unsigned))                       \
  X(cuEventDestroy, cuEventDestroy_v2, (CUevent))                              \
  X(cuEventRecord, cuEventRecord, (CUevent, CUstream))                         \
  X(cuEventSynchronize, cuEventSynchronize, (CUevent))                         \
  X(cuEventElapsedTime, cuEventElapsedTime, (float *, CUevent, CUevent))

/// This process's driver.
struct Driver {
#define TPRT_FUNCTION(name, symbol, parameters) CUresult(*name) parameters;
  TPRT_CUDA_DRIVER_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION

  /// Loads the driver once. Throws an input error if it is missing or too old,
  /// or finds no device.
  static const Driver &get();

  /// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string describe(CUresult result) const;

  /// Throws an execution error that names the function, unless `result` is
  /// CUDA_SUCCESS.
  void check(CUresult result, const char *function) const;

private:
  Driver();
};

/// Calls a function of the driver, and throws an execution error if it fails.
#define TPRT_CUDA(driver, function, ...)                                       \
  (driver).check((driver).function(__VA_ARGS__), #function)

/// The device's address for a pointer that programs use.
inline CUdeviceptr toDevice(const void *address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DRIVER_H
