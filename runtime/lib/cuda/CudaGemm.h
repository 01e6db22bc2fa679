//===- CudaGemm.h - Matrix products on a CUDA device ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_CUDAGEMM_H
#define TPRT_LIB_CUDA_CUDAGEMM_H

#include "cuda/GemmPlan.h"
#include "cuda/OwnKernels.h"

namespace tprt::cuda {

/// The products of one stream, by cuBLASLt. Its choice for each shape is kept.
/// All products share one workspace.
class Gemm {
public:
  Gemm(ContextPtr context, Kernels &own, bool tf32);
  ~Gemm();

  /// Enqueues a product; see tprt_gemm. What follows a product is cuBLASLt's
  /// epilogue or, if it has none for it, an own kernel. Throws an execution
  /// error if the arguments are out of range, or if cuBLASLt doesn't support
  /// them. Factors aren't supported.
  void run(const tprt_gemm_args &args, const GemmOperands &operands,
           CUstream stream);

private:
  void runBatch(const tprt_gemm_args &args, const GemmOperands &operands,
                CUstream stream);
  std::unique_ptr<GemmPlan> makePlan(const tprt_gemm_args &args,
                                     const GemmOperands &operands);

  ContextPtr context;
  Kernels &own;
  bool tf32;
  cublasLtHandle_t handle = nullptr; ///< made by the first product
  std::shared_ptr<std::byte> workspace;
  /// Indexed by the arguments' bytes, which operands there are, and alignments.
  std::map<std::string, std::unique_ptr<GemmPlan>> plans;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_CUDAGEMM_H
