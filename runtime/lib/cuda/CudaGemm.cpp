//===- CudaGemm.cpp - Matrix products on a CUDA device --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuBLASLt's matrices are column-major. To cuBLASLt, a row-major C = A * B is
// the product of B^T and A^T: its first operand is B, its second one is A, and
// each column of its result is a row of C. The bias that it adds to rows of its
// result is therefore added to columns of C.
//
//===----------------------------------------------------------------------===//

#include "cuda/CudaGemm.h"

#include "cuda/CudaStream.h"

#include <type_traits>

using namespace tprt;
using namespace tprt::cuda;

// NVIDIA's recommendation for Hopper; enough for older architectures.
static constexpr size_t workspaceBytes = 32 << 20;

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

/// The operation that cuBLASLt applies to the sums. Throws if it has none.
static int32_t getEpilogue(const tprt_gemm_args &args,
                           const GemmOperands &operands) {
  if (operands.factor)
    throw executionError("tprt_gemm: cuBLASLt multiplies no product by a "
                         "factor, element by element");
  int32_t epilogue = operands.bias ? CUBLASLT_EPILOGUE_BIAS : 0;
  switch (args.activation) {
  case TPRT_NO_ACTIVATION:
    return epilogue ? epilogue : CUBLASLT_EPILOGUE_DEFAULT;
  case TPRT_RELU:
    epilogue |= CUBLASLT_EPILOGUE_RELU;
    break;
  case TPRT_GELU_TANH:
    epilogue |= CUBLASLT_EPILOGUE_GELU;
    break;
  default:
    throw executionError("tprt_gemm: cuBLASLt has no activation but relu and "
                         "the gelu by tanh");
  }
  if (args.dtype == TPRT_F64)
    throw executionError("tprt_gemm: cuBLASLt has no activations for f64");
  return epilogue;
}

/// The largest power of two up to 256 that divides the address.
static uint32_t getAlignment(const void *address) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(address) | 256;
  return bits & -bits;
}

/// The state that is kept for a kind of product.
struct Gemm::Plan {
  ~Plan() {
    const Blas &blas = Blas::get();
    for (cublasLtMatrixLayout_t layout : layouts)
      blas.cublasLtMatrixLayoutDestroy(layout);
    blas.cublasLtMatmulDescDestroy(product);
  }

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t layouts[4] = {}; ///< of B, A, the addend and C
  cublasLtMatmulAlgo_t algorithm = {};
};

Gemm::Gemm(ContextPtr context, bool tf32)
    : context(std::move(context)), tf32(tf32) {}

Gemm::~Gemm() {
  plans.clear();
  if (handle)
    Blas::get().cublasLtDestroy(handle);
}

#define TPRT_BLAS(function, ...)                                               \
  blas.check(blas.function(__VA_ARGS__), #function)

std::unique_ptr<Gemm::Plan>
Gemm::makePlan(const tprt_gemm_args &args, const GemmOperands &given,
               const std::array<uint32_t, 4> &alignments) {
  const Blas &blas = Blas::get();
  int32_t type = toCudaType(args.dtype);
  int32_t compute = type == CUDA_R_64F           ? CUBLAS_COMPUTE_64F
                    : type == CUDA_R_32F && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
  Operand operands[] = {
      transpose(args.k, args.n, args.b_row, args.b_col),
      transpose(args.m, args.k, args.a_row, args.a_col),
      transpose(args.m, args.n, given.addend ? args.addend_row : args.c_row,
                /*columnStride=*/1),
      transpose(args.m, args.n, args.c_row, /*columnStride=*/1)};

  auto plan = std::make_unique<Plan>();
  TPRT_BLAS(cublasLtMatmulDescCreate, &plan->product, compute,
            type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F);
  auto set = [&](int32_t attribute, auto value) {
    TPRT_BLAS(cublasLtMatmulDescSetAttribute, plan->product, attribute, &value,
              sizeof(value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, operands[0].op);
  set(CUBLASLT_MATMUL_DESC_TRANSB, operands[1].op);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, getEpilogue(args, given));
  if (given.bias)
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
  int64_t batchStrides[] = {args.b_b1, args.a_b1,
                            given.addend ? args.addend_b1 : args.c_b1,
                            args.c_b1};
  for (size_t i = 0; i < 4; ++i) {
    TPRT_BLAS(cublasLtMatrixLayoutCreate, &plan->layouts[i], type,
              operands[i].rows, operands[i].columns,
              operands[i].leadingDimension);
    if (args.batch1 == 1)
      continue;
    auto count = static_cast<int32_t>(args.batch1);
    TPRT_BLAS(cublasLtMatrixLayoutSetAttribute, plan->layouts[i],
              CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
    TPRT_BLAS(cublasLtMatrixLayoutSetAttribute, plan->layouts[i],
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batchStrides[i],
              sizeof(batchStrides[i]));
  }

  cublasLtMatmulPreference_t preference = nullptr;
  TPRT_BLAS(cublasLtMatmulPreferenceCreate, &preference);
  std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                  decltype(blas.cublasLtMatmulPreferenceDestroy)>
      owner(preference, blas.cublasLtMatmulPreferenceDestroy);
  auto prefer = [&](int32_t attribute, auto value) {
    TPRT_BLAS(cublasLtMatmulPreferenceSetAttribute, preference, attribute,
              &value, sizeof(value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[0]);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[1]);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[3]);
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  cublasStatus_t status = blas.cublasLtMatmulAlgoGetHeuristic(
      handle, plan->product, plan->layouts[0], plan->layouts[1],
      plan->layouts[2], plan->layouts[3], preference, 1, &result, &found);
  if (status == CUBLAS_STATUS_SUCCESS && found == 0)
    status = CUBLAS_STATUS_NOT_SUPPORTED;
  blas.check(status, "cublasLtMatmulAlgoGetHeuristic");
  plan->algorithm = result.algo;
  return plan;
}

void Gemm::runBatch(const tprt_gemm_args &args, const GemmOperands &operands,
                    CUstream stream) {
  const Blas &blas = Blas::get();
  const void *added = operands.addend ? operands.addend : operands.c;
  std::array<uint32_t, 4> alignments = {
      getAlignment(operands.b), getAlignment(operands.a), getAlignment(added),
      getAlignment(operands.c)};
  std::string key(reinterpret_cast<const char *>(&args), sizeof(args));
  key.append(reinterpret_cast<const char *>(alignments.data()),
             sizeof(alignments));
  key.push_back(operands.bias != nullptr);
  key.push_back(operands.addend != nullptr);
  std::unique_ptr<Plan> &plan = plans[key];
  if (!plan)
    plan = makePlan(args, operands, alignments);
  if (operands.bias)
    TPRT_BLAS(cublasLtMatmulDescSetAttribute, plan->product,
              CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands.bias,
              sizeof(operands.bias));
  // Scalars have the type in which products are scaled.
  double one = 1, zero = 0;
  float oneSingle = 1, zeroSingle = 0;
  bool isDouble = args.dtype == TPRT_F64;
  const void *alpha = isDouble ? static_cast<void *>(&one) : &oneSingle;
  const void *none = isDouble ? static_cast<void *>(&zero) : &zeroSingle;
  bool adds = args.accumulate || operands.addend;
  TPRT_BLAS(cublasLtMatmul, handle, plan->product, alpha, operands.b,
            plan->layouts[0], operands.a, plan->layouts[1], adds ? alpha : none,
            added, plan->layouts[2], operands.c, plan->layouts[3],
            &plan->algorithm, workspace.get(), workspaceBytes, stream);
}

/// A product with k = 0: the old value of C, the addend, or zero, plus the
/// bias.
void Gemm::runEmpty(const tprt_gemm_args &args, const GemmOperands &operands,
                    CudaStream &stream) {
  if ((args.accumulate || operands.addend) && operands.bias)
    throw executionError(
        "tprt_gemm: both adding a matrix and a bias, of f64 or over no "
        "elements, aren't supported on CUDA devices");
  if (args.activation != TPRT_NO_ACTIVATION)
    throw executionError("tprt_gemm: an activation of sums over no elements "
                         "isn't supported on CUDA devices");
  if (args.accumulate)
    return;
  int64_t width = byteWidth(static_cast<Dtype>(args.dtype));
  for (int64_t b0 = 0; b0 < args.batch0; ++b0)
    for (int64_t b1 = 0; b1 < args.batch1; ++b1)
      for (int64_t i = 0; i < args.m; ++i) {
        std::byte *row =
            static_cast<std::byte *>(operands.c) +
            (b0 * args.c_b0 + b1 * args.c_b1 + i * args.c_row) * width;
        if (operands.bias)
          stream.copy(row, operands.bias, args.n * width);
        else if (operands.addend)
          stream.copy(row,
                      static_cast<const std::byte *>(operands.addend) +
                          (b0 * args.addend_b0 + b1 * args.addend_b1 +
                           i * args.addend_row) *
                              width,
                      args.n * width);
        else
          stream.fill(row, 0, 1, args.n * width);
      }
}

void Gemm::run(const tprt_gemm_args &args, const GemmOperands &given,
               CudaStream &stream) {
  toCudaType(args.dtype); // throws if cuBLASLt doesn't have it
  getEpilogue(args, given);
  if (args.accumulate && given.addend)
    throw executionError("tprt_gemm: what accumulates has no addend");
  if (args.m <= 0 || args.n <= 0 || args.batch0 <= 0 || args.batch1 <= 0)
    return;
  if (args.k <= 0)
    return runEmpty(args, given, stream);
  if (!handle) {
    const Blas &blas = Blas::get();
    TPRT_BLAS(cublasLtCreate, &handle);
    workspace = allocate(context, workspaceBytes);
  }
  // Merge the two batch dimensions if that is possible for all operands.
  // Otherwise, make one call for each index of the outer one.
  tprt_gemm_args batch = args;
  GemmOperands operands = given;
  if (args.dtype == TPRT_F64 && given.bias) { // for which there is no epilogue
    runEmpty(args, given, stream);
    batch.accumulate = 1;
    operands.bias = nullptr;
  }
  batch.batch0 = 1;
  batch.a_b0 = batch.b_b0 = batch.c_b0 = batch.addend_b0 = 0;
  int64_t calls = args.batch0;
  if (args.batch1 == 1) {
    batch.batch1 = args.batch0;
    batch.a_b1 = args.a_b0;
    batch.b_b1 = args.b_b0;
    batch.c_b1 = args.c_b0;
    batch.addend_b1 = args.addend_b0;
    calls = 1;
  } else if (args.a_b0 == args.batch1 * args.a_b1 &&
             args.b_b0 == args.batch1 * args.b_b1 &&
             args.c_b0 == args.batch1 * args.c_b1 &&
             (!given.addend ||
              args.addend_b0 == args.batch1 * args.addend_b1)) {
    batch.batch1 *= args.batch0;
    calls = 1;
  }
  int64_t width = byteWidth(static_cast<Dtype>(args.dtype));
  auto advance = [&](auto *&data, int64_t elements) {
    if (data)
      data = reinterpret_cast<std::remove_reference_t<decltype(data)>>(
          reinterpret_cast<uintptr_t>(data) + elements * width);
  };
  for (int64_t i = 0; i < calls; ++i) {
    runBatch(batch, operands, stream.get());
    advance(operands.a, args.a_b0);
    advance(operands.b, args.b_b0);
    advance(operands.c, args.c_b0);
    advance(operands.addend, args.addend_b0);
  }
}
