//===- GemmPlan.h - A kind of product as cuBLASLt takes it ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_GEMMPLAN_H
#define TPRT_LIB_CUDA_GEMMPLAN_H

#include "cpu/GemmOperands.h"
#include "cuda/Blas.h"
#include "tprt/CudaOptions.h"

#include <memory>

namespace tprt::cuda {

/// NVIDIA's recommendation for Hopper; enough for older architectures.
inline constexpr size_t gemmWorkspaceBytes = 32 << 20;

/// How many of the given operands a product's call uses.
enum class GemmForm {
  Plain, ///< A, B and, if it accumulates, the old C
  Fused, ///< the addend, the bias and the activation, too
};

/// Descriptors and an algorithm for products of the same sizes, strides and
/// alignments, in one batch dimension (batch0 is 1).
class GemmPlan {
public:
  /// Asks cuBLASLt for its algorithms. Throws an execution error if the dtype
  /// isn't f32, f64, f16 or bf16.
  GemmPlan(cublasLtHandle_t handle, const tprt_gemm_args &args,
           const GemmOperands &operands, bool tf32, GemmForm form);

  GemmForm getForm() const { return form; }
  /// CUBLAS_STATUS_SUCCESS, or why there is no algorithm.
  cublasStatus_t getStatus() const { return status; }

  /// Enqueues a product by the algorithm at a position of cuBLASLt's list,
  /// which has use.numAlgorithms. Writes the result to `result` instead of C.
  /// `workspace` has gemmWorkspaceBytes.
  cublasStatus_t run(int64_t algorithm, const tprt_gemm_args &args,
                     const GemmOperands &operands, void *result,
                     std::byte *workspace, CUstream stream) const;

  GemmUse use; ///< what has been chosen

private:
  struct Destroy {
    void operator()(cublasLtMatmulDesc_t descriptor) const;
    void operator()(cublasLtMatrixLayout_t layout) const;
  };

  void ask(const GemmOperands &operands);

  cublasLtHandle_t handle;
  GemmForm form;
  std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy> product;
  /// Of B, A, the addend and C.
  std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy> layouts[4];
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  std::vector<cublasLtMatmulAlgo_t> algorithms;
};

/// The largest power of two up to 256 that divides the address.
uint32_t getAlignment(const void *address);
/// All properties of a product that cuBLASLt's algorithms depend on, but for the
/// device and the library, for people. `form` says which operands are its own.
std::string describeProduct(const tprt_gemm_args &args,
                            const GemmOperands &operands, bool tf32,
                            GemmForm form);
/// Whether there are operations that follow the product's sums.
bool hasEpilogue(const tprt_gemm_args &args, const GemmOperands &operands);
/// Whether cuBLASLt has them, for some shapes at least.
bool canFuse(const tprt_gemm_args &args, const GemmOperands &operands);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_GEMMPLAN_H
