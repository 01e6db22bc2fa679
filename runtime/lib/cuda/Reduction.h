//===- Reduction.h - Elementwise reduction on a CUDA device -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_REDUCTION_H
#define TPRT_LIB_CUDA_REDUCTION_H

#include "cpu/Reduce.h"
#include "cuda/OwnKernels.h"

namespace tprt::cuda {

/// Enqueues the operation of reduce() in cpu/Reduce.h, with the same bits. There
/// must be at least one element. Throws an execution error for more than
/// maxReduced operands.
void reduce(Kernels &kernels, Reduction reduction, Dtype dtype,
            const std::vector<const std::byte *> &operands,
            const std::vector<std::byte *> &results, int64_t count,
            CUstream stream);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_REDUCTION_H
