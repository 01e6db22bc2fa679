//===- Epilogue.h - Epilogues that cuBLASLt doesn't have --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_EPILOGUE_H
#define TPRT_LIB_CUDA_EPILOGUE_H

#include "cuda/EpilogueArguments.h"
#include "cuda/OwnKernels.h"
#include "tprt/Dtype.h"

namespace tprt::cuda {

/// Enqueues C = activation(C + addend + bias), where the bias is added to each
/// row. `dtype` is a floating-point type.
void applyEpilogue(Kernels &kernels,
                   const tprt_kernels::EpilogueArguments &arguments,
                   Dtype dtype, CUstream stream);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_EPILOGUE_H
