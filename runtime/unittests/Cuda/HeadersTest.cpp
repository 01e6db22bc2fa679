//===- HeadersTest.cpp - Our declarations against NVIDIA's ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles or doesn't: sizes, constants, and the parameters of functions. Types
// that have one name in both are NVIDIA's in the global namespace and ours in
// tprt::cuda.
//
//===----------------------------------------------------------------------===//

#include <cuda.h>

#ifdef cuEventElapsedTime // the version before has the same parameters
#undef cuEventElapsedTime
extern "C" decltype(cuEventElapsedTime_v2) cuEventElapsedTime;
#endif

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define HAS_CUBLASLT
#endif

// What the header names otherwise, by macros.
#undef cuDevicePrimaryCtxRelease
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemGetInfo
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoDAsync
#undef cuMemcpy2DAsync
#undef cuStreamDestroy
#undef cuStreamBeginCapture
#undef cuGraphInstantiate
#undef cuEventDestroy

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#if CUDNN_VERSION >= 91100 // what the runtime needs
#define HAS_CUDNN
#endif
#endif

#if __has_include(<nccl.h>)
#include <nccl.h>
#define HAS_NCCL
#endif

#ifdef NCCL_SPLIT_NOCOLOR
constexpr int splitNoColor = NCCL_SPLIT_NOCOLOR;
#undef NCCL_SPLIT_NOCOLOR
#endif
#ifdef NCCL_WIN_COLL_SYMMETRIC
constexpr int winCollSymmetric = NCCL_WIN_COLL_SYMMETRIC;
#undef NCCL_WIN_COLL_SYMMETRIC
#endif

#include "comm/nccl/Nccl.h"
#include "cuda/Blas.h"
#include "cuda/Dnn.h"
#include "cuda/Driver.h"

#include <type_traits>

namespace ours = tprt::cuda;

/// The same to the calling convention: numbers of the same size and kind,
/// pointers whatever they point to.
template <typename A, typename B>
constexpr bool isSameType() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return std::is_void_v<A> && std::is_void_v<B>;
  } else {
    auto isNumber = [](auto value) {
      using T = typename decltype(value)::type;
      return std::is_integral_v<T> || std::is_enum_v<T>;
    };
    std::type_identity<A> a;
    std::type_identity<B> b;
    if (std::is_pointer_v<A> || std::is_pointer_v<B>)
      return std::is_pointer_v<A> && std::is_pointer_v<B>;
    if (std::is_class_v<A> || std::is_class_v<B>)
      return std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B);
    return sizeof(A) == sizeof(B) && isNumber(a) && isNumber(b);
  }
}

template <typename A, typename B>
struct IsSameFunction : std::false_type {};
template <typename A, typename B, typename... As, typename... Bs>
struct IsSameFunction<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(As) == sizeof...(Bs))
      return isSameType<A, B>() && (isSameType<As, Bs>() && ...);
    return false;
  }
  static constexpr bool value = compare();
};

#define CHECK_DRIVER(name, symbol, parameters)                                 \
  static_assert(IsSameFunction<decltype(ours::Driver::name),                   \
                               decltype(&::symbol)>::value,                    \
                #symbol);
TPRT_CUDA_DRIVER_FUNCTIONS(CHECK_DRIVER)

#define CHECK_VALUE(name)                                                      \
  static_assert(static_cast<long long>(ours::name) ==                          \
                static_cast<long long>(::name));
CHECK_VALUE(CUDA_SUCCESS)
CHECK_VALUE(CUDA_ERROR_OUT_OF_MEMORY)
CHECK_VALUE(CUDA_ERROR_NO_DEVICE)
CHECK_VALUE(CUDA_ERROR_NOT_READY)
CHECK_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
CHECK_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
CHECK_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
CHECK_VALUE(CU_JIT_ERROR_LOG_BUFFER)
CHECK_VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
CHECK_VALUE(CU_MEMORYTYPE_DEVICE)
CHECK_VALUE(CU_STREAM_CAPTURE_MODE_RELAXED)
CHECK_VALUE(CU_STREAM_NON_BLOCKING)
CHECK_VALUE(CU_EVENT_DEFAULT)
CHECK_VALUE(CU_EVENT_DISABLE_TIMING)

#define CHECK_FIELD(type, field)                                               \
  static_assert(offsetof(ours::type, field) == offsetof(::type, field));
static_assert(sizeof(ours::CUDA_MEMCPY2D) == sizeof(::CUDA_MEMCPY2D));
CHECK_FIELD(CUDA_MEMCPY2D, srcMemoryType)
CHECK_FIELD(CUDA_MEMCPY2D, srcDevice)
CHECK_FIELD(CUDA_MEMCPY2D, srcPitch)
CHECK_FIELD(CUDA_MEMCPY2D, dstMemoryType)
CHECK_FIELD(CUDA_MEMCPY2D, dstDevice)
CHECK_FIELD(CUDA_MEMCPY2D, dstPitch)
CHECK_FIELD(CUDA_MEMCPY2D, WidthInBytes)
CHECK_FIELD(CUDA_MEMCPY2D, Height)

#ifdef HAS_CUBLASLT
#define CHECK_BLAS(name, result, parameters)                                   \
  static_assert(                                                               \
      IsSameFunction<decltype(ours::Blas::name), decltype(&::name)>::value,    \
      #name);
TPRT_CUBLASLT_FUNCTIONS(CHECK_BLAS)

CHECK_VALUE(CUBLAS_STATUS_SUCCESS)
CHECK_VALUE(CUBLAS_STATUS_NOT_SUPPORTED)
CHECK_VALUE(CUBLAS_COMPUTE_32F)
CHECK_VALUE(CUBLAS_COMPUTE_64F)
CHECK_VALUE(CUBLAS_COMPUTE_32F_FAST_TF32)
CHECK_VALUE(CUDA_R_32F)
CHECK_VALUE(CUDA_R_64F)
CHECK_VALUE(CUDA_R_16F)
CHECK_VALUE(CUDA_R_16BF)
CHECK_VALUE(CUBLAS_OP_N)
CHECK_VALUE(CUBLAS_OP_T)
CHECK_VALUE(CUBLASLT_EPILOGUE_DEFAULT)
CHECK_VALUE(CUBLASLT_EPILOGUE_RELU)
CHECK_VALUE(CUBLASLT_EPILOGUE_BIAS)
CHECK_VALUE(CUBLASLT_EPILOGUE_RELU_BIAS)
CHECK_VALUE(CUBLASLT_EPILOGUE_GELU)
CHECK_VALUE(CUBLASLT_EPILOGUE_GELU_BIAS)
CHECK_VALUE(CUBLASLT_MATMUL_DESC_TRANSA)
CHECK_VALUE(CUBLASLT_MATMUL_DESC_TRANSB)
CHECK_VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE)
CHECK_VALUE(CUBLASLT_MATMUL_DESC_BIAS_POINTER)
CHECK_VALUE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)
CHECK_VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
CHECK_VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
CHECK_VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
CHECK_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
CHECK_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
CHECK_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)
CHECK_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)

static_assert(sizeof(ours::cublasLtMatmulAlgo_t) ==
              sizeof(::cublasLtMatmulAlgo_t));
static_assert(sizeof(ours::cublasLtMatmulHeuristicResult_t) ==
              sizeof(::cublasLtMatmulHeuristicResult_t));
CHECK_FIELD(cublasLtMatmulHeuristicResult_t, workspaceSize)
CHECK_FIELD(cublasLtMatmulHeuristicResult_t, state)
#endif

#ifdef HAS_CUDNN
#define CHECK_DNN(name, result, parameters)                                    \
  static_assert(                                                               \
      IsSameFunction<decltype(ours::Dnn::name), decltype(&::name)>::value,     \
      #name);
TPRT_CUDNN_FUNCTIONS(CHECK_DNN)

CHECK_VALUE(CUDNN_STATUS_SUCCESS)
CHECK_VALUE(CUDNN_DATA_FLOAT)
CHECK_VALUE(CUDNN_DATA_HALF)
CHECK_VALUE(CUDNN_DATA_INT32)
CHECK_VALUE(CUDNN_DATA_BFLOAT16)
CHECK_VALUE(CUDNN_DATA_BOOLEAN)
CHECK_VALUE(CUDNN_POINTWISE_ADD)
CHECK_VALUE(CUDNN_POINTWISE_MUL)
CHECK_VALUE(CUDNN_POINTWISE_DIV)
CHECK_VALUE(CUDNN_POINTWISE_SUB)
CHECK_VALUE(CUDNN_POINTWISE_EXP)
CHECK_VALUE(CUDNN_POINTWISE_LOG)
CHECK_VALUE(CUDNN_POINTWISE_CMP_GE)
CHECK_VALUE(CUDNN_POINTWISE_GEN_INDEX)
CHECK_VALUE(CUDNN_POINTWISE_BINARY_SELECT)
CHECK_VALUE(CUDNN_REDUCE_TENSOR_ADD)
CHECK_VALUE(CUDNN_REDUCE_TENSOR_MAX)
CHECK_VALUE(CUDNN_HEUR_MODE_A)
CHECK_VALUE(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
CHECK_VALUE(CUDNN_TYPE_HANDLE)
CHECK_VALUE(CUDNN_TYPE_DATA_TYPE)
CHECK_VALUE(CUDNN_TYPE_BOOLEAN)
CHECK_VALUE(CUDNN_TYPE_INT64)
CHECK_VALUE(CUDNN_TYPE_VOID_PTR)
CHECK_VALUE(CUDNN_TYPE_HEUR_MODE)
CHECK_VALUE(CUDNN_TYPE_NUMERICAL_NOTE)
CHECK_VALUE(CUDNN_TYPE_POINTWISE_MODE)
CHECK_VALUE(CUDNN_TYPE_BACKEND_DESCRIPTOR)
CHECK_VALUE(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE)
CHECK_VALUE(CUDNN_TYPE_CHAR)
CHECK_VALUE(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)
CHECK_VALUE(CUDNN_ATTR_TENSOR_DATA_TYPE)
CHECK_VALUE(CUDNN_ATTR_TENSOR_DIMENSIONS)
CHECK_VALUE(CUDNN_ATTR_TENSOR_STRIDES)
CHECK_VALUE(CUDNN_ATTR_TENSOR_UNIQUE_ID)
CHECK_VALUE(CUDNN_ATTR_TENSOR_IS_VIRTUAL)
CHECK_VALUE(CUDNN_ATTR_TENSOR_IS_BY_VALUE)
CHECK_VALUE(CUDNN_BACKEND_MATMUL_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_MATMUL_COMP_TYPE)
CHECK_VALUE(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_OPERATION_MATMUL_ADESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_MATMUL_BDESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_MATMUL_CDESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_MATMUL_DESC)
CHECK_VALUE(CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_POINTWISE_MODE)
CHECK_VALUE(CUDNN_ATTR_POINTWISE_MATH_PREC)
CHECK_VALUE(CUDNN_ATTR_POINTWISE_AXIS)
CHECK_VALUE(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_POINTWISE_TDESC)
CHECK_VALUE(CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_REDUCTION_OPERATOR)
CHECK_VALUE(CUDNN_ATTR_REDUCTION_COMP_TYPE)
CHECK_VALUE(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_OPERATION_REDUCTION_XDESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_REDUCTION_YDESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
CHECK_VALUE(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_OPERATION_RESHAPE_XDESC)
CHECK_VALUE(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)
CHECK_VALUE(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
CHECK_VALUE(CUDNN_ATTR_OPERATIONGRAPH_OPS)
CHECK_VALUE(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_ENGINEHEUR_MODE)
CHECK_VALUE(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
CHECK_VALUE(CUDNN_ATTR_ENGINEHEUR_RESULTS)
CHECK_VALUE(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP)
CHECK_VALUE(CUDNN_BACKEND_ENGINE_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
CHECK_VALUE(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_ENGINECFG_ENGINE)
CHECK_VALUE(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
CHECK_VALUE(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
CHECK_VALUE(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
CHECK_VALUE(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)
CHECK_VALUE(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
CHECK_VALUE(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)
CHECK_VALUE(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
CHECK_VALUE(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)
#endif

#ifdef HAS_NCCL
#define CHECK_NCCL(name, result, parameters)                                   \
  static_assert(                                                               \
      IsSameFunction<decltype(ours::Nccl::name), decltype(&::name)>::value,    \
      #name);
TPRT_NCCL_FUNCTIONS(CHECK_NCCL)
#if NCCL_VERSION_CODE >= 21900
TPRT_NCCL_MEMORY_FUNCTIONS(CHECK_NCCL)
#endif
#if NCCL_VERSION_CODE >= 22700
TPRT_NCCL_WINDOW_FUNCTIONS(CHECK_NCCL)
static_assert(ours::NCCL_WIN_COLL_SYMMETRIC == winCollSymmetric);
#endif

CHECK_VALUE(ncclSuccess)
CHECK_VALUE(ncclInt8)
CHECK_VALUE(ncclUint8)
CHECK_VALUE(ncclInt32)
CHECK_VALUE(ncclInt64)
CHECK_VALUE(ncclFloat16)
CHECK_VALUE(ncclFloat32)
CHECK_VALUE(ncclFloat64)
CHECK_VALUE(ncclBfloat16)
CHECK_VALUE(ncclSum)
CHECK_VALUE(ncclProd)
CHECK_VALUE(ncclMax)
CHECK_VALUE(ncclMin)
CHECK_VALUE(ncclAvg)
static_assert(ours::NCCL_SPLIT_NOCOLOR == splitNoColor);
static_assert(sizeof(ours::ncclUniqueId) == sizeof(::ncclUniqueId));
#endif
