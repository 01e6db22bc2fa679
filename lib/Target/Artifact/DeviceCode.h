//===- DeviceCode.h - Kernels for GPUs --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TARGET_ARTIFACT_DEVICECODE_H
#define TP_LIB_TARGET_ARTIFACT_DEVICECODE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace mlir::tp {

/// The number that stands for the emulated device.
constexpr int32_t kEmulatedArchitecture = 0;

/// The kernels of a program for one architecture: tprt_device_image.
struct DeviceImage {
  int32_t architecture;
  bool isPTX;
  std::string data;
};

/// What the runtime needs to run kernels: tprt_device_code.
struct DeviceCode {
  std::vector<DeviceImage> images = {};
  std::vector<std::string> kernels = {}, sites = {}; ///< names
};

/// The architectures of "cuda:sm_90,sm_100", ascending; "cuda:emulated" is one
/// that a CPU emulates.
llvm::Expected<SmallVector<int32_t>> parseDeviceTarget(StringRef target);

/// PTX of `kernels` for one architecture.
llvm::Expected<std::string>
compileToPTX(gpu::GPUModuleOp kernels, int32_t architecture, unsigned optLevel);

/// The images in an artifact for `architectures`: a cubin for each, and PTX of
/// the oldest one for drivers that refuse the cubins and of the newest one for
/// newer devices. Without ptxas there is only PTX, for each, and `warn` is
/// called.
llvm::Expected<std::vector<DeviceImage>>
compileKernels(gpu::GPUModuleOp kernels, ArrayRef<int32_t> architectures,
               StringRef hostCPU, unsigned optLevel,
               llvm::function_ref<void(const llvm::Twine &)> warn);

/// Adds a constant `symbol`, a tprt_device_code, to the host's module.
void addDeviceCode(llvm::Module &module, const DeviceCode &code,
                   StringRef symbol);

} // namespace mlir::tp

#endif // TP_LIB_TARGET_ARTIFACT_DEVICECODE_H
