//===- CudaDevice.h - CUDA devices ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_CUDADEVICE_H
#define TPRT_LIB_CUDA_CUDADEVICE_H

#include "device/Device.h"
#include "tprt/CudaOptions.h"
#include "tprt/GemmChoice.h"

namespace tprt::cuda {

/// The device for programs, at least one, whose kernels are `codes`, which must
/// outlive it. Without a file in `gemm`, or unless `mayMeasure` (see
/// chooseGemms), the products aren't measured. Throws an input error if there
/// is no driver, no such device, or no kernels for it.
TPRT_API std::shared_ptr<Device>
makeDevice(const std::vector<const tprt_device_code *> &codes,
           const CudaOptions &options, const GemmOptions &gemm = {},
           bool mayMeasure = true);

/// Throws an input error if the library for matrix products is missing.
void checkProducts();

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_CUDADEVICE_H
