//===- CudaGemm.h - Matrix products on a CUDA device ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_CUDAGEMM_H
#define TPRT_LIB_CUDA_CUDAGEMM_H

#include "cpu/GemmOperands.h"
#include "cuda/Blas.h"
#include "cuda/Context.h"

#include <array>

namespace tprt::cuda {

class CudaStream;

/// The products of one stream, by cuBLASLt. Its choice for each shape is kept.
/// All products share one workspace.
class Gemm {
public:
  Gemm(ContextPtr context, bool tf32);
  ~Gemm();

  /// Enqueues a product; see tprt_gemm. Throws an execution error if the
  /// arguments are out of range, or if cuBLASLt doesn't support them. It
  /// supports no factors, and only the activations relu and gelu by tanh, and
  /// none for f64.
  void run(const tprt_gemm_args &args, const GemmOperands &operands,
           CudaStream &stream);

private:
  struct Plan;

  void runEmpty(const tprt_gemm_args &args, const GemmOperands &operands,
                CudaStream &stream);
  void runBatch(const tprt_gemm_args &args, const GemmOperands &operands,
                CUstream stream);
  std::unique_ptr<Plan> makePlan(const tprt_gemm_args &args,
                                 const GemmOperands &operands,
                                 const std::array<uint32_t, 4> &alignments);

  ContextPtr context;
  bool tf32;
  cublasLtHandle_t handle = nullptr; ///< made by the first product
  std::shared_ptr<std::byte> workspace;
  /// Indexed by the arguments' bytes, which operands there are, and alignments.
  std::map<std::string, std::unique_ptr<Plan>> plans;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_CUDAGEMM_H
