//===- Kernels.h - Effects of kernels without a device ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FAKE_KERNELS_H
#define TPRT_FAKE_KERNELS_H

#include "DeviceImage.h"
#include "Work.h"

#include <optional>

namespace tprt::cuda {

struct CUfunc_st {
  std::string name;
  size_t numArguments; ///< of 8 bytes; 0: one block of `argumentBytes`
  size_t argumentBytes;
  uint32_t sharedBytes;
  std::function<void(uint32_t grid, uint32_t block, void *const *arguments)>
      run;
  fake::KernelLimits limits = {};
  uint32_t maxSharedBytes = 48 << 10; ///< dynamic, until raised
};

} // namespace tprt::cuda

namespace tprt::fake {

/// A kernel of ReduceKernels.cu; nullopt if it has none of that name.
std::optional<cuda::CUfunc_st> findReduction(const std::string &name);
/// A kernel of EpilogueKernels.cu.
std::optional<cuda::CUfunc_st> findEpilogue(const std::string &name);
/// A kernel of GemvKernels.cu.
std::optional<cuda::CUfunc_st> findGemv(const std::string &name);
/// A kernel of AttentionKernels.cu, AttentionTileKernels.cu,
/// AttentionGradientKernels.cu or DecodeKernels.cu.
std::optional<cuda::CUfunc_st> findAttention(const std::string &name);

} // namespace tprt::fake

#endif // TPRT_FAKE_KERNELS_H
