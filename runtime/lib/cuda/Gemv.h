//===- Gemv.h - Products of few rows on a CUDA device -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_GEMV_H
#define TPRT_LIB_CUDA_GEMV_H

#include "cpu/GemmOperands.h"
#include "cuda/OwnKernels.h"

namespace tprt::cuda {

/// Enqueues a product of up to 8 rows, without a factor, if it is one of f32,
/// f16 or bf16 in one batch, whose rows of A and columns of B are contiguous and
/// aligned to 16 bytes. Otherwise does nothing and returns false.
bool multiplyRows(Kernels &kernels, const tprt_gemm_args &args,
                  const GemmOperands &operands, CUstream stream);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_GEMV_H
