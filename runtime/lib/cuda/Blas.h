//===- Blas.h - cuBLASLt ----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of cuBLASLt that the runtime uses, under cuBLASLt's names.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_BLAS_H
#define TPRT_LIB_CUDA_BLAS_H

#include "cuda/Driver.h"

namespace tprt::cuda {

struct cublasLtContext;
struct cublasLtMatmulDescOpaque_t;
struct cublasLtMatrixLayoutOpaque_t;
struct cublasLtMatmulPreferenceOpaque_t;

using cublasStatus_t = int32_t;
using cublasLtHandle_t = cublasLtContext *;
using cublasLtMatmulDesc_t = cublasLtMatmulDescOpaque_t *;
using cublasLtMatrixLayout_t = cublasLtMatrixLayoutOpaque_t *;
using cublasLtMatmulPreference_t = cublasLtMatmulPreferenceOpaque_t *;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

enum : int32_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,

  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,

  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_16BF = 14,

  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,

  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS,
  CUBLASLT_EPILOGUE_GELU = 32, ///< the tanh approximation
  CUBLASLT_EPILOGUE_GELU_BIAS = CUBLASLT_EPILOGUE_GELU | CUBLASLT_EPILOGUE_BIAS,

  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,

  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,

  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};

#define TPRT_CUBLASLT_FUNCTIONS(X)                                             \
  X(cublasLtCreate, cublasStatus_t, (cublasLtHandle_t *))                      \
  X(cublasLtDestroy, cublasStatus_t, (cublasLtHandle_t))                       \
  X(cublasLtGetVersion, size_t, ())                                            \
  X(cublasLtGetStatusName, const char *, (cublasStatus_t))                     \
  X(cublasLtMatmulDescCreate, cublasStatus_t,                                  \
    (cublasLtMatmulDesc_t *, int32_t computeType, int32_t scaleType))          \
  X(cublasLtMatmulDescDestroy, cublasStatus_t, (cublasLtMatmulDesc_t))         \
  X(cublasLtMatmulDescSetAttribute, cublasStatus_t,                            \
    (cublasLtMatmulDesc_t, int32_t, const void *, size_t))                     \
  X(cublasLtMatrixLayoutCreate, cublasStatus_t,                                \
    (cublasLtMatrixLayout_t *, int32_t type, uint64_t rows, uint64_t columns,  \
     int64_t leadingDimension))                                                \
  X(cublasLtMatrixLayoutDestroy, cublasStatus_t, (cublasLtMatrixLayout_t))     \
  X(cublasLtMatrixLayoutSetAttribute, cublasStatus_t,                          \
    (cublasLtMatrixLayout_t, int32_t, const void *, size_t))                   \
  X(cublasLtMatmulPreferenceCreate, cublasStatus_t,                            \
    (cublasLtMatmulPreference_t *))                                            \
  X(cublasLtMatmulPreferenceDestroy, cublasStatus_t,                           \
    (cublasLtMatmulPreference_t))                                              \
  X(cublasLtMatmulPreferenceSetAttribute, cublasStatus_t,                      \
    (cublasLtMatmulPreference_t, int32_t, const void *, size_t))               \
  X(cublasLtMatmulAlgoGetHeuristic, cublasStatus_t,                            \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,           \
     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,   \
     cublasLtMatmulPreference_t, int requested,                                \
     cublasLtMatmulHeuristicResult_t *, int *returned))                        \
  X(cublasLtMatmul, cublasStatus_t,                                            \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, const void *alpha, const void *a, \
     cublasLtMatrixLayout_t, const void *b, cublasLtMatrixLayout_t,            \
     const void *beta, const void *c, cublasLtMatrixLayout_t, void *d,         \
     cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *workspace,    \
     size_t workspaceBytes, CUstream))

struct Blas {
#define TPRT_FUNCTION(name, result, parameters) result(*name) parameters;
  TPRT_CUBLASLT_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION

  /// Loads cuBLASLt once. Throws an input error if it is missing or too old.
  static const Blas &get();

  /// "13.1.0".
  std::string getVersion() const;

  /// Throws an execution error that names the function, unless `status` is
  /// CUBLAS_STATUS_SUCCESS.
  void check(cublasStatus_t status, const char *function) const;

private:
  Blas();
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_BLAS_H
