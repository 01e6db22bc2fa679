//===- CudaGemm.h - Matrix products on a CUDA device ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_CUDAGEMM_H
#define TPRT_LIB_CUDA_CUDAGEMM_H

#include "cuda/GemmAlgorithms.h"
#include "cuda/GemmPlan.h"
#include "cuda/Gemv.h"
#include "cuda/OwnKernels.h"

#include <map>

namespace tprt::cuda {

/// The products of one stream, by cuBLASLt or, if they have few rows, by own
/// kernels. cuBLASLt's algorithm for each shape is chosen once. All products
/// share one workspace.
class Gemm {
public:
  Gemm(ContextPtr context, Kernels &own, GemmAlgorithms &algorithms, bool tf32);
  ~Gemm();

  /// Enqueues a product; see tprt_gemm. What follows a product is cuBLASLt's
  /// epilogue or, if it has none for it, an own kernel. Throws an execution
  /// error if the arguments are out of range, or if cuBLASLt doesn't support
  /// them. If `mayWait`, the first product of a shape may wait for the stream,
  /// to measure algorithms. Products of few rows may be held until a later
  /// call or flush() enqueues them.
  void run(const tprt_gemm_args &args, const GemmOperands &operands,
           CUstream stream, bool mayWait);
  /// Enqueues the products that are held.
  void flush(CUstream stream) { rowProducts.flush(stream); }
  bool holdsProducts() const { return !rowProducts.isEmpty(); }

  /// Resets the counts of calls.
  void beginRun();
  std::vector<GemmUse> getUses() const;

private:
  void runBatch(const tprt_gemm_args &args, const GemmOperands &operands,
                CUstream stream, bool mayWait);
  /// Null if cuBLASLt doesn't support the fused form.
  std::unique_ptr<GemmPlan> findPlan(const tprt_gemm_args &args,
                                     const GemmOperands &operands,
                                     GemmForm form);
  GemmAlgorithms::Measured measure(const GemmPlan &plan,
                                   const tprt_gemm_args &args,
                                   const GemmOperands &operands,
                                   CUstream stream, double maxSeconds);

  ContextPtr context;
  Kernels &own;
  RowProducts rowProducts{own};
  GemmAlgorithms &algorithms;
  bool tf32;
  cublasLtHandle_t handle = nullptr; ///< made by the first product
  std::shared_ptr<std::byte> workspace;
  /// Of measurements that didn't end in time.
  std::vector<std::shared_ptr<std::byte>> inUse;
  /// Indexed by the arguments' bytes, which operands there are, and alignments.
  std::map<std::string, std::unique_ptr<GemmPlan>> plans;
  std::map<std::string, GemmUse> ownProducts; ///< of own kernels
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_CUDAGEMM_H
