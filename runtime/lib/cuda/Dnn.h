//===- Dnn.h - cuDNN --------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of cuDNN's backend API that the runtime uses, under cuDNN's names.
// Everything in this API is a descriptor with numbered attributes, so a dozen
// functions are enough.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_DNN_H
#define TPRT_LIB_CUDA_DNN_H

#include "cuda/Driver.h"

namespace tprt::cuda {

struct cudnnContext;

using cudnnStatus_t = int32_t;
using cudnnHandle_t = cudnnContext *;
using cudnnBackendDescriptor_t = void *;

enum : int32_t {
  CUDNN_STATUS_SUCCESS = 0,

  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_BOOLEAN = 11,

  CUDNN_POINTWISE_ADD = 0,
  CUDNN_POINTWISE_MUL = 1,
  CUDNN_POINTWISE_DIV = 6,
  CUDNN_POINTWISE_SUB = 9,
  CUDNN_POINTWISE_EXP = 13,
  CUDNN_POINTWISE_LOG = 15,
  CUDNN_POINTWISE_CMP_GE = 303,
  CUDNN_POINTWISE_GEN_INDEX = 501,
  CUDNN_POINTWISE_BINARY_SELECT = 601,

  CUDNN_REDUCE_TENSOR_ADD = 0,
  CUDNN_REDUCE_TENSOR_MAX = 3,

  CUDNN_HEUR_MODE_A = 3,
  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,

  // Types of attributes.
  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_DATA_TYPE = 1,
  CUDNN_TYPE_BOOLEAN = 2,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_HEUR_MODE = 8,
  CUDNN_TYPE_NUMERICAL_NOTE = 11,
  CUDNN_TYPE_POINTWISE_MODE = 14,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18,
  CUDNN_TYPE_CHAR = 24,

  // Kinds of descriptors, each with its attributes.
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
  CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,

  CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18,
  CUDNN_ATTR_MATMUL_COMP_TYPE = 1500,
  CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
  CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520,
  CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
  CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522,
  CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523,

  CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
  CUDNN_ATTR_POINTWISE_MODE = 0,
  CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
  CUDNN_ATTR_POINTWISE_AXIS = 9,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
  CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
  CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758,

  CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21,
  CUDNN_ATTR_REDUCTION_OPERATOR = 1600,
  CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601,
  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
  CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
  CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611,
  CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612,

  CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31,
  CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200,
  CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201,

  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,

  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_ENGINEHEUR_DEVICEPROP = 204,

  CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
  CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_ATTR_ENGINECFG_ENGINE = 300,

  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,

  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,

  // Describes a device that needn't be present, to find plans for it.
  CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR = 38,
  CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION = 2702,
};

#define TPRT_CUDNN_FUNCTIONS(X)                                                \
  X(cudnnGetVersion, size_t, ())                                               \
  X(cudnnGetErrorString, const char *, (cudnnStatus_t))                        \
  X(cudnnGetLastErrorString, void, (char *, size_t))                           \
  X(cudnnCreate, cudnnStatus_t, (cudnnHandle_t *))                             \
  X(cudnnDestroy, cudnnStatus_t, (cudnnHandle_t))                              \
  X(cudnnSetStream, cudnnStatus_t, (cudnnHandle_t, CUstream))                  \
  X(cudnnBackendCreateDescriptor, cudnnStatus_t,                               \
    (int32_t kind, cudnnBackendDescriptor_t *))                                \
  X(cudnnBackendDestroyDescriptor, cudnnStatus_t, (cudnnBackendDescriptor_t))  \
  X(cudnnBackendFinalize, cudnnStatus_t, (cudnnBackendDescriptor_t))           \
  X(cudnnBackendSetAttribute, cudnnStatus_t,                                   \
    (cudnnBackendDescriptor_t, int32_t name, int32_t type, int64_t count,      \
     const void *))                                                            \
  X(cudnnBackendGetAttribute, cudnnStatus_t,                                   \
    (cudnnBackendDescriptor_t, int32_t name, int32_t type, int64_t requested,  \
     int64_t *count, void *))                                                  \
  X(cudnnBackendExecute, cudnnStatus_t,                                        \
    (cudnnHandle_t, cudnnBackendDescriptor_t plan,                             \
     cudnnBackendDescriptor_t pack))

/// This process's cuDNN.
struct TPRT_API Dnn {
#define TPRT_FUNCTION(name, result, parameters) result(*name) parameters;
  TPRT_CUDNN_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION

  /// Throws an input error if cuDNN is missing or too old.
  Dnn();
  /// Loaded once.
  static const Dnn &get();

  /// "9.19.0".
  std::string getVersion() const;

  /// Throws an execution error that names the function and cuDNN's reason,
  /// unless `status` is CUDNN_STATUS_SUCCESS.
  void check(cudnnStatus_t status, const char *function) const;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DNN_H
