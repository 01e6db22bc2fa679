//===- GemmPlan.cpp - A kind of product as cuBLASLt takes it --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuBLASLt's matrices are column-major. To cuBLASLt, a row-major C = A * B is
// the product of B^T and A^T: its first operand is B, its second one is A, and
// each column of its result is a row of C. The bias that it adds to rows of its
// result is therefore added to columns of C.
//
//===----------------------------------------------------------------------===//

#include "cuda/GemmPlan.h"

#include "tprt/Dtype.h"

#include <optional>

using namespace tprt;
using namespace tprt::cuda;

namespace {

/// A matrix as cuBLASLt sees it: column-major, perhaps to be transposed.
struct Operand {
  uint64_t rows, columns;
  int64_t leadingDimension;
  int32_t op;
};

} // namespace

/// The transpose of a rows x columns matrix in our terms.
static Operand transpose(int64_t rows, int64_t columns, int64_t rowStride,
                         int64_t columnStride) {
  auto toUnsigned = [](int64_t size) { return static_cast<uint64_t>(size); };
  if (columnStride == 1 || columns == 1) // rows are its columns
    return {toUnsigned(columns), toUnsigned(rows),
            rows == 1 ? columns : rowStride, CUBLAS_OP_N};
  return {toUnsigned(rows), toUnsigned(columns),
          columns == 1 ? rows : columnStride, CUBLAS_OP_T};
}

static int32_t toCudaType(int32_t dtype) {
  switch (dtype) {
  case TPRT_F32:
    return CUDA_R_32F;
  case TPRT_F64:
    return CUDA_R_64F;
  case TPRT_F16:
    return CUDA_R_16F;
  case TPRT_BF16:
    return CUDA_R_16BF;
  default:
    throw executionError("tprt_gemm: dtype is not f32, f64, f16 or bf16");
  }
}

/// The operation that cuBLASLt applies to the sums; nullopt if it has none.
static std::optional<int32_t> findEpilogue(const tprt_gemm_args &args,
                                           const GemmOperands &operands) {
  int32_t epilogue = operands.bias ? CUBLASLT_EPILOGUE_BIAS : 0;
  switch (args.activation) {
  case TPRT_NO_ACTIVATION:
    break;
  case TPRT_RELU:
    epilogue |= CUBLASLT_EPILOGUE_RELU;
    break;
  case TPRT_GELU_TANH:
    epilogue |= CUBLASLT_EPILOGUE_GELU;
    break;
  default:
    return std::nullopt;
  }
  if (!epilogue)
    return CUBLASLT_EPILOGUE_DEFAULT;
  if (args.dtype == TPRT_F64)
    return std::nullopt;
  return epilogue;
}

bool cuda::hasEpilogue(const tprt_gemm_args &args,
                       const GemmOperands &operands) {
  return operands.bias || operands.addend || operands.factor ||
         args.activation != TPRT_NO_ACTIVATION;
}

bool cuda::canFuse(const tprt_gemm_args &args, const GemmOperands &operands) {
  // Rows of a matrix of cuBLASLt's don't overlap.
  if (operands.addend && args.m > 1 && args.addend_row < args.n)
    return false;
  return !operands.factor && findEpilogue(args, operands).has_value();
}

uint32_t cuda::getAlignment(const void *address) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(address) | 256;
  return bits & -bits;
}

static const char *getName(int64_t activation) {
  switch (activation) {
  case TPRT_RELU:
    return ", relu";
  case TPRT_GELU:
    return ", gelu";
  case TPRT_GELU_TANH:
    return ", gelu by tanh";
  case TPRT_SILU:
    return ", silu";
  default:
    return "";
  }
}

std::string cuda::describeProduct(const tprt_gemm_args &args,
                                  const GemmOperands &operands, bool tf32,
                                  GemmForm form) {
  auto number = [](int64_t value) { return std::to_string(value); };
  auto layout = [&](const char *name, int64_t row, int64_t column) {
    return std::string(", ") + name +
           (column == 1 ? " by rows of " + number(row)
                        : " by columns of " + number(column));
  };
  std::string text(toString(static_cast<Dtype>(args.dtype)));
  if (tf32 && args.dtype == TPRT_F32)
    text += " as tf32";
  text += ", " + number(args.m) + " x " + number(args.n) + " x " +
          number(args.k) + " (m x n x k)" +
          layout("A", args.a_row, args.k == 1 ? 1 : args.a_col) +
          layout("B", args.b_row, args.n == 1 ? 1 : args.b_col) +
          layout("C", args.c_row, 1);
  if (args.batch1 > 1)
    text += ", " + number(args.batch1) + " batches of " + number(args.a_b1) +
            ", " + number(args.b_b1) + " and " + number(args.c_b1);
  if (args.accumulate)
    text += ", accumulates";
  bool isFused = form == GemmForm::Fused;
  if (isFused && operands.addend) {
    text += layout("addend", args.addend_row, 1);
    if (args.batch1 > 1)
      text += " and batches of " + number(args.addend_b1);
  }
  if (isFused && operands.bias)
    text += ", bias";
  if (isFused)
    text += getName(args.activation);
  if (isFused && operands.factor)
    text += layout("factor", args.factor_row, 1);
  text += ", aligned to";
  for (const void *address :
       {operands.a, operands.b, static_cast<const void *>(operands.c),
        isFused ? operands.addend : nullptr})
    if (address)
      text += " " + number(getAlignment(address));
  return text;
}

#define TPRT_BLAS(function, ...)                                               \
  blas.check(blas.function(__VA_ARGS__), #function)

GemmPlan::GemmPlan(cublasLtHandle_t handle, const tprt_gemm_args &args,
                   const GemmOperands &given, bool tf32, GemmForm form)
    : handle(handle), form(form) {
  const Blas &blas = Blas::get();
  bool isFused = form == GemmForm::Fused;
  bool hasAddend = isFused && given.addend;
  int32_t type = toCudaType(args.dtype);
  int32_t compute = type == CUDA_R_64F           ? CUBLAS_COMPUTE_64F
                    : type == CUDA_R_32F && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
  Operand operands[] = {transpose(args.k, args.n, args.b_row, args.b_col),
                        transpose(args.m, args.k, args.a_row, args.a_col),
                        transpose(args.m, args.n,
                                  hasAddend ? args.addend_row : args.c_row,
                                  /*columnStride=*/1),
                        transpose(args.m, args.n, args.c_row,
                                  /*columnStride=*/1)};
  cublasLtMatmulDesc_t descriptor = nullptr;
  TPRT_BLAS(cublasLtMatmulDescCreate, &descriptor, compute,
            type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F);
  product.reset(descriptor);
  auto set = [&](int32_t attribute, auto value) {
    TPRT_BLAS(cublasLtMatmulDescSetAttribute, descriptor, attribute, &value,
              sizeof(value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, operands[0].op);
  set(CUBLASLT_MATMUL_DESC_TRANSB, operands[1].op);
  if (isFused) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, *findEpilogue(args, given));
    if (given.bias)
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
  }
  int64_t batchStrides[] = {args.b_b1, args.a_b1,
                            hasAddend ? args.addend_b1 : args.c_b1, args.c_b1};
  for (size_t i = 0; i < 4; ++i) {
    cublasLtMatrixLayout_t layout = nullptr;
    TPRT_BLAS(cublasLtMatrixLayoutCreate, &layout, type, operands[i].rows,
              operands[i].columns, operands[i].leadingDimension);
    layouts[i].reset(layout);
    if (args.batch1 == 1)
      continue;
    auto count = static_cast<int32_t>(args.batch1);
    TPRT_BLAS(cublasLtMatrixLayoutSetAttribute, layout,
              CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
    TPRT_BLAS(cublasLtMatrixLayoutSetAttribute, layout,
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batchStrides[i],
              sizeof(batchStrides[i]));
  }
  ask(given);
  use.form = describeProduct(args, given, tf32, form);
  use.library = "cuBLASLt " + blas.getVersion();
  use.epilogue = isFused ? "fused" : hasEpilogue(args, given) ? "own" : "none";
  use.numAlgorithms = algorithms.size();
}

void GemmPlan::ask(const GemmOperands &operands) {
  const Blas &blas = Blas::get();
  cublasLtMatmulPreference_t preference = nullptr;
  TPRT_BLAS(cublasLtMatmulPreferenceCreate, &preference);
  std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                  decltype(blas.cublasLtMatmulPreferenceDestroy)>
      owner(preference, blas.cublasLtMatmulPreferenceDestroy);
  auto prefer = [&](int32_t attribute, auto value) {
    TPRT_BLAS(cublasLtMatmulPreferenceSetAttribute, preference, attribute,
              &value, sizeof(value));
  };
  bool hasAddend = form == GemmForm::Fused && operands.addend;
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, gemmWorkspaceBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, getAlignment(operands.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, getAlignment(operands.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
         getAlignment(hasAddend ? operands.addend : operands.c));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, getAlignment(operands.c));
  constexpr int maxAlgorithms = 16;
  cublasLtMatmulHeuristicResult_t results[maxAlgorithms] = {};
  int found = 0;
  status = blas.cublasLtMatmulAlgoGetHeuristic(
      handle, product.get(), layouts[0].get(), layouts[1].get(),
      layouts[2].get(), layouts[3].get(), preference, maxAlgorithms, results,
      &found);
  for (int i = 0; i < found && status == CUBLAS_STATUS_SUCCESS; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS &&
        results[i].workspaceSize <= gemmWorkspaceBytes)
      algorithms.push_back(results[i].algo);
  if (status == CUBLAS_STATUS_SUCCESS && algorithms.empty())
    status = CUBLAS_STATUS_NOT_SUPPORTED;
}

void GemmPlan::Destroy::operator()(cublasLtMatmulDesc_t descriptor) const {
  Blas::get().cublasLtMatmulDescDestroy(descriptor);
}

void GemmPlan::Destroy::operator()(cublasLtMatrixLayout_t layout) const {
  Blas::get().cublasLtMatrixLayoutDestroy(layout);
}

cublasStatus_t GemmPlan::run(int64_t algorithm, const tprt_gemm_args &args,
                             const GemmOperands &operands, void *result,
                             std::byte *workspace, CUstream stream) const {
  const Blas &blas = Blas::get();
  bool isFused = form == GemmForm::Fused;
  if (isFused && operands.bias)
    TPRT_BLAS(cublasLtMatmulDescSetAttribute, product.get(),
              CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands.bias,
              sizeof(operands.bias));
  // Scalars have the type in which products are scaled.
  double one = 1, zero = 0;
  float oneSingle = 1, zeroSingle = 0;
  bool isDouble = args.dtype == TPRT_F64;
  const void *alpha = isDouble ? static_cast<void *>(&one) : &oneSingle;
  const void *none = isDouble ? static_cast<void *>(&zero) : &zeroSingle;
  const void *addend = isFused ? operands.addend : nullptr;
  bool adds = args.accumulate || addend;
  if (!addend)
    addend = args.accumulate ? operands.c : result;
  return blas.cublasLtMatmul(handle, product.get(), alpha, operands.b,
                             layouts[0].get(), operands.a, layouts[1].get(),
                             adds ? alpha : none, addend, layouts[2].get(),
                             result, layouts[3].get(), &algorithms[algorithm],
                             workspace, gemmWorkspaceBytes, stream);
}
