//===- FakeBlas.cpp - libcublasLt without a device ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Work.h"
#include "cuda/Blas.h"

#include "tprt/Dtype.h"

#include <cmath>
#include <cstring>
#include <map>
#include <thread>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum : cublasStatus_t {
  NOT_INITIALIZED = 1,
  INVALID_VALUE = 7,
  EXECUTION_FAILED = 13
};

/// Attributes by number, each with its bytes.
struct Attributes {
  std::map<int32_t, std::string> values;

  cublasStatus_t set(int32_t attribute, const void *data, size_t bytes) {
    values[attribute].assign(static_cast<const char *>(data), bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  template <typename T>
  T get(int32_t attribute, T otherwise) const {
    auto found = values.find(attribute);
    if (found == values.end())
      return otherwise;
    T value = otherwise;
    if (found->second.size() == sizeof(T))
      std::memcpy(&value, found->second.data(), sizeof(T));
    return value;
  }
};

} // namespace

// The types are the library's own to define.
namespace tprt::cuda {
struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t : Attributes {
  int32_t compute, scale;
};
struct cublasLtMatrixLayoutOpaque_t : Attributes {
  int32_t type;
  int64_t rows, columns, leadingDimension;
};
struct cublasLtMatmulPreferenceOpaque_t : Attributes {};
} // namespace tprt::cuda

namespace {

/// Makes a descriptor.
template <typename T>
cublasStatus_t make(const char *function, T **descriptor) {
  Lock lock(getMutex());
  if (int32_t status = takeFault(function))
    return status;
  *descriptor = new T;
  addLive(*descriptor);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t destroy(T *descriptor) {
  removeLive(descriptor);
  delete descriptor;
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t set(const char *function, T *descriptor, int32_t attribute,
                   const void *data, size_t bytes) {
  Lock lock(getMutex());
  if (int32_t status = takeFault(function))
    return status;
  return descriptor->set(attribute, data, bytes);
}

/// An operand of a product when it runs.
struct Matrix {
  int32_t type;
  int64_t rows, columns, leadingDimension, batchStride;
  bool isTransposed;
  char *data;

  Matrix(cublasLtMatrixLayout_t layout, const void *data, bool isTransposed)
      : type(layout->type), rows(layout->rows), columns(layout->columns),
        leadingDimension(layout->leadingDimension),
        batchStride(layout->get<int64_t>(
            CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0)),
        isTransposed(isTransposed),
        data(static_cast<char *>(const_cast<void *>(data))) {}

  int64_t getWidth() const {
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
  }
  bool check(int64_t batches) const {
    int64_t last =
        (batches - 1) * batchStride + (columns - 1) * leadingDimension + rows;
    return leadingDimension >= rows && checkMemory(data, last * getWidth());
  }
  int64_t getOffset(int64_t batch, int64_t i, int64_t j) const {
    if (isTransposed)
      std::swap(i, j);
    return batch * batchStride + j * leadingDimension + i;
  }
  double get(int64_t batch, int64_t i, int64_t j) const {
    return load(type, data, getOffset(batch, i, j));
  }
  static double load(int32_t type, const void *data, int64_t offset) {
    switch (type) {
    case CUDA_R_64F:
      return static_cast<const double *>(data)[offset];
    case CUDA_R_32F:
      return static_cast<const float *>(data)[offset];
    case CUDA_R_16F:
      return static_cast<const Half *>(data)[offset];
    default:
      return static_cast<const BFloat16 *>(data)[offset].widen();
    }
  }
  void set(int64_t batch, int64_t i, int64_t j, double value) {
    int64_t offset = getOffset(batch, i, j);
    switch (type) {
    case CUDA_R_64F:
      reinterpret_cast<double *>(data)[offset] = value;
      break;
    case CUDA_R_32F:
      reinterpret_cast<float *>(data)[offset] = value;
      break;
    case CUDA_R_16F:
      reinterpret_cast<Half *>(data)[offset] = static_cast<Half>(value);
      break;
    default:
      reinterpret_cast<BFloat16 *>(data)[offset] = BFloat16::round(value);
    }
  }
};

} // namespace

EXPORT size_t cublasLtGetVersion() { return getSettings().blasVersion; }

EXPORT const char *cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                   : "CUBLAS_STATUS_EXECUTION_FAILED";
}

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  Lock lock(getMutex());
  if (int32_t status = note("cublasLtCreate"))
    return status;
  if (!requireContext())
    return NOT_INITIALIZED;
  *handle = new cublasLtContext;
  addLive(*handle);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  Lock lock(getMutex());
  note("cublasLtDestroy");
  if (!requireContext())
    return NOT_INITIALIZED;
  removeLive(handle);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                               int32_t compute, int32_t scale) {
  if (cublasStatus_t status = make("cublasLtMatmulDescCreate", desc))
    return status;
  (*desc)->compute = compute;
  (*desc)->scale = scale;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy(desc);
}
EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                     int32_t attribute,
                                                     const void *data,
                                                     size_t bytes) {
  return set("cublasLtMatmulDescSetAttribute", desc, attribute, data, bytes);
}

EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                                 int32_t type, uint64_t rows,
                                                 uint64_t columns,
                                                 int64_t leadingDimension) {
  if (cublasStatus_t status = make("cublasLtMatrixLayoutCreate", layout))
    return status;
  (*layout)->type = type;
  (*layout)->rows = rows;
  (*layout)->columns = columns;
  (*layout)->leadingDimension = leadingDimension;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t
cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}
EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, int32_t attribute, const void *data,
    size_t bytes) {
  return set("cublasLtMatrixLayoutSetAttribute", layout, attribute, data,
             bytes);
}

EXPORT cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  return make("cublasLtMatmulPreferenceCreate", preference);
}
EXPORT cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, int32_t attribute, const void *data,
    size_t bytes) {
  return set("cublasLtMatmulPreferenceSetAttribute", preference, attribute,
             data, bytes);
}

static int32_t getEpilogue(cublasLtMatmulDesc_t desc) {
  return desc->get<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE,
                            CUBLASLT_EPILOGUE_DEFAULT);
}

/// Follows NVIDIA's table of supported combinations.
static bool isSupported(cublasLtMatmulDesc_t desc) {
  switch (getEpilogue(desc)) {
  case CUBLASLT_EPILOGUE_DEFAULT:
    return true;
  case CUBLASLT_EPILOGUE_RELU:
  case CUBLASLT_EPILOGUE_BIAS:
  case CUBLASLT_EPILOGUE_RELU_BIAS:
  case CUBLASLT_EPILOGUE_GELU:
  case CUBLASLT_EPILOGUE_GELU_BIAS:
    return desc->compute != CUBLAS_COMPUTE_64F;
  default:
    return false;
  }
}

/// A hash of the properties that a choice holds for. A product with another
/// hash is rejected.
static uint64_t identify(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                         cublasLtMatrixLayout_t d) {
  uint64_t hash = desc->compute;
  auto add = [&](int64_t value) { hash = hash * 1099511628211u + value; };
  for (cublasLtMatrixLayout_t layout : {a, b, c, d}) {
    add(layout->type);
    add(layout->rows);
    add(layout->columns);
    add(layout->leadingDimension);
  }
  add(desc->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N));
  add(desc->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N));
  add(getEpilogue(desc));
  return hash | 1;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
    int requested, cublasLtMatmulHeuristicResult_t *result, int *returned) {
  Lock lock(getMutex());
  *returned = 0;
  if (int32_t status = note("cublasLtMatmulAlgoGetHeuristic"))
    return status;
  for (cublasLtMatrixLayout_t layout : {a, b, c, d})
    if (layout->leadingDimension < layout->rows)
      return INVALID_VALUE;
  if (!isSupported(desc))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  // As the real one may, it has no algorithm for some other products either.
  if (getEpilogue(desc) != CUBLASLT_EPILOGUE_DEFAULT && d->columns == 1)
    return CUBLAS_STATUS_SUCCESS;
  *returned = std::min(requested, getSettings().blasAlgorithms);
  for (int i = 0; i < *returned; ++i) {
    result[i].algo.data[0] = identify(desc, a, b, c, d);
    result[i].algo.data[1] = i;
    for (int32_t operand = 0; operand < 4; ++operand) // what was promised
      result[i].algo.data[2 + operand] = preference->get<uint32_t>(
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + operand, 256);
    result[i].workspaceSize =
        preference->get<size_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 0);
    result[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alpha,
    const void *aData, cublasLtMatrixLayout_t aLayout, const void *bData,
    cublasLtMatrixLayout_t bLayout, const void *beta, const void *cData,
    cublasLtMatrixLayout_t cLayout, void *dData, cublasLtMatrixLayout_t dLayout,
    const cublasLtMatmulAlgo_t *algorithm, void *workspace,
    size_t workspaceBytes, CUstream stream) {
  Lock lock(getMutex());
  auto number = static_cast<int32_t>(algorithm->data[1]);
  if (int32_t status = note("cublasLtMatmul",
                            std::to_string(number) + " " + describe(stream)))
    return status;
  Matrix a(aLayout, aData,
           desc->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N));
  Matrix b(bLayout, bData,
           desc->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N));
  Matrix c(cLayout, cData, false), d(dLayout, dData, false);
  int64_t m = d.rows, n = d.columns;
  int64_t k = a.isTransposed ? a.rows : a.columns;
  bool fits =
      (a.isTransposed ? a.columns : a.rows) == m &&
      (b.isTransposed ? b.columns : b.rows) == k &&
      (b.isTransposed ? b.rows : b.columns) == n && c.rows == m &&
      c.columns == n &&
      algorithm->data[0] == identify(desc, aLayout, bLayout, cLayout, dLayout);
  const void *addresses[] = {aData, bData, cData, dData};
  for (size_t operand = 0; operand < 4; ++operand)
    fits &= reinterpret_cast<uintptr_t>(addresses[operand]) %
                algorithm->data[2 + operand] ==
            0;
  fits &= reinterpret_cast<uintptr_t>(workspace) % 256 == 0;
  // In place, C and D must have the same layout.
  bool isInPlace = cData == dData;
  bool isSame = c.type == d.type && c.leadingDimension == d.leadingDimension &&
                c.batchStride == d.batchStride;
  if (!fits || (isInPlace && !isSame))
    return INVALID_VALUE;
  auto getScalar = [&](const void *scalar) {
    return desc->scale == CUDA_R_64F ? *static_cast<const double *>(scalar)
                                     : *static_cast<const float *>(scalar);
  };
  double scale = getScalar(alpha), keep = getScalar(beta);
  int32_t epilogue = getEpilogue(desc);
  const void *bias = nullptr;
  if (epilogue & CUBLASLT_EPILOGUE_BIAS) {
    bias = desc->get<const void *>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr);
    if (!bias)
      return INVALID_VALUE;
  }
  int64_t batches =
      dLayout->get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1);
  enqueue(stream, [=]() mutable {
    if (number == getSettings().hangingAlgorithm)
      return false;
    std::this_thread::sleep_for(
        std::chrono::milliseconds(getSettings().blasMilliseconds));
    if (!a.check(batches) || !b.check(batches) || !d.check(batches) ||
        (keep != 0 && !c.check(batches)) ||
        !checkMemory(workspace, workspaceBytes) ||
        (bias && !checkMemory(bias, m * a.getWidth()))) {
      setFailed(700); // an illegal address
      return true;
    }
    if (number != getSettings().fastestAlgorithm)
      addTime(std::chrono::milliseconds(100));
    std::memset(workspace, 0xAB, workspaceBytes); // not shared with other work
    std::vector<double> column(m);
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t j = 0; j < n; ++j) {
        std::fill(column.begin(), column.end(), 0.0);
        for (int64_t l = 0; l < k; ++l) {
          double factor = b.get(batch, l, j);
          for (int64_t i = 0; i < m; ++i)
            column[i] += a.get(batch, i, l) * factor;
        }
        for (int64_t i = 0; i < m; ++i) {
          double value = scale * column[i];
          if (keep != 0)
            value += keep * c.get(batch, i, j);
          if (bias)
            value += Matrix::load(d.type, bias, i);
          if (epilogue & CUBLASLT_EPILOGUE_RELU)
            value = value < 0 ? 0 : value;
          else if (epilogue & CUBLASLT_EPILOGUE_GELU)
            value *=
                0.5 +
                0.5 * std::tanh(0.7978845608028654 *
                                (value + 0.044715 * value * value * value));
          d.set(batch, i, j, value);
        }
      }
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}
