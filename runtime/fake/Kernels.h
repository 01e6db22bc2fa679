//===- Kernels.h - What kernels do without a device -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FAKE_KERNELS_H
#define TPRT_FAKE_KERNELS_H

#include "Work.h"

namespace tprt::cuda {

struct CUfunc_st {
  std::string name;
  size_t numArguments; ///< of 8 bytes; 0: one block of `argumentBytes`
  size_t argumentBytes;
  uint32_t sharedBytes;
  std::function<void(uint32_t grid, uint32_t block, void *const *arguments)>
      run;
};

} // namespace tprt::cuda

namespace tprt::fake {

/// A kernel of the runtime's own: tprt_reduce_REDUCTION_DTYPE,
/// tprt_attention_DTYPE, tprt_attention_query_gradient_DTYPE,
/// tprt_attention_key_gradient_DTYPE or tprt_attention_hidden_rows_DTYPE.
cuda::CUfunc_st makeOwn(const std::string &name);
/// The attention kernels among them.
cuda::CUfunc_st makeAttention(const std::string &name);

/// Finds the kernel `name` of an emulated image, loaded as `handle`. Returns
/// false if there is none.
bool findEmulated(void *handle, const std::string &name,
                  cuda::CUfunc_st &function);

} // namespace tprt::fake

#endif // TPRT_FAKE_KERNELS_H
