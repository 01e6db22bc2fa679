//===- DeviceImage.h - What PTX and cubins say ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FAKE_DEVICEIMAGE_H
#define TPRT_FAKE_DEVICEIMAGE_H

#include "cuda/Driver.h"

#include <map>
#include <optional>
#include <string>

namespace tprt::fake {

/// What a launch of a kernel may have.
struct KernelLimits {
  uint32_t maxThreads = 1024; ///< of a block
  uint32_t registers = 0;     ///< of a thread; 0: the image doesn't say
};

/// CUDA_SUCCESS if a driver of the current settings takes `ptx`, else why not.
cuda::CUresult checkPtx(const std::string &ptx);
/// The limits of the entry `name`, from .maxntid and .maxnreg; nullopt if there
/// is no such entry.
std::optional<KernelLimits> findPtxLimits(const std::string &ptx,
                                          const std::string &name);

/// A cubin that ptxas has made. Sections, attributes and flags are those that
/// ptxas of CUDA 13.0 writes; NVIDIA doesn't document them.
struct Cubin {
  int32_t architecture = 0; ///< 90 for sm_90
  bool isOfCuda13 = false;  ///< ptxas of 13.0 or later; older drivers refuse it
  std::map<std::string, KernelLimits> kernels = {};
};

bool isObject(const void *data); ///< of ELF
bool isCubin(const void *data);
/// Reads a cubin whose header is intact.
Cubin readCubin(const void *data);
/// CUDA_SUCCESS if a driver and a device of the current settings take `cubin`,
/// else why not.
cuda::CUresult checkCubin(const Cubin &cubin);

} // namespace tprt::fake

#endif // TPRT_FAKE_DEVICEIMAGE_H
