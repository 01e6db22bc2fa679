//===- Gemm.cpp - Matrix products on a CUDA device -----------------------===//
//
// cuBLASLt's matrices are column-major. A row-major C = A * B is to it C^T =
// B^T
// * A^T: its first operand is B, its second one A, and each column of its
// result is a row of C, so that what it adds to rows of the result, the bias,
// is added to columns of C.
//
//===----------------------------------------------------------------------===//

#include "Cuda/Gemm.h"

#include "Cuda/CudaStream.h"

using namespace tprt;
using namespace tprt::cuda;

// What NVIDIA recommends for Hopper; enough for older ones.
static constexpr size_t workspaceBytes = 32 << 20;

namespace {

/// A matrix as cuBLASLt sees it: column-major, perhaps to be transposed.
struct Operand {
  uint64_t rows, columns;
  int64_t leadingDimension;
  int32_t op;
};

} // namespace

/// The transpose of a rows x columns matrix of ours.
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

/// The largest power of two up to 256 that divides the address.
static uint32_t getAlignment(const void *address) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(address) | 256;
  return bits & -bits;
}

/// What is kept of a product.
struct Gemm::Plan {
  ~Plan() {
    const Blas &blas = Blas::get();
    for (cublasLtMatrixLayout_t layout : layouts)
      blas.cublasLtMatrixLayoutDestroy(layout);
    blas.cublasLtMatmulDescDestroy(product);
  }

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t layouts[3] = {}; ///< of B, A and C
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
Gemm::makePlan(const tprt_gemm_args &args, bool hasBias,
               const std::array<uint32_t, 3> &alignments) {
  const Blas &blas = Blas::get();
  int32_t type = toCudaType(args.dtype);
  int32_t compute = type == CUDA_R_64F           ? CUBLAS_COMPUTE_64F
                    : type == CUDA_R_32F && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
  Operand operands[] = {
      transpose(args.k, args.n, args.b_row, args.b_col),
      transpose(args.m, args.k, args.a_row, args.a_col),
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
  if (hasBias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, int32_t(CUBLASLT_EPILOGUE_BIAS));
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
  }
  int64_t batchStrides[] = {args.b_b1, args.a_b1, args.c_b1};
  for (size_t i = 0; i < 3; ++i) {
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
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]);
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  cublasStatus_t status = blas.cublasLtMatmulAlgoGetHeuristic(
      handle, plan->product, plan->layouts[0], plan->layouts[1],
      plan->layouts[2], plan->layouts[2], preference, 1, &result, &found);
  if (status == CUBLAS_STATUS_SUCCESS && found == 0)
    status = CUBLAS_STATUS_NOT_SUPPORTED;
  blas.check(status, "cublasLtMatmulAlgoGetHeuristic");
  plan->algorithm = result.algo;
  return plan;
}

void Gemm::runBatch(const tprt_gemm_args &args, const void *a, const void *b,
                    void *c, const void *bias, CUstream stream) {
  const Blas &blas = Blas::get();
  std::array<uint32_t, 3> alignments = {getAlignment(b), getAlignment(a),
                                        getAlignment(c)};
  std::string key(reinterpret_cast<const char *>(&args), sizeof(args));
  key.append(reinterpret_cast<const char *>(alignments.data()),
             sizeof(alignments));
  key.push_back(bias != nullptr);
  std::unique_ptr<Plan> &plan = plans[key];
  if (!plan)
    plan = makePlan(args, bias != nullptr, alignments);
  if (bias)
    TPRT_BLAS(cublasLtMatmulDescSetAttribute, plan->product,
              CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
  // Scalars are of the type that products are scaled in.
  double one = 1, zero = 0;
  float oneSingle = 1, zeroSingle = 0;
  bool isDouble = args.dtype == TPRT_F64;
  const void *alpha = isDouble ? static_cast<void *>(&one) : &oneSingle;
  const void *none = isDouble ? static_cast<void *>(&zero) : &zeroSingle;
  TPRT_BLAS(cublasLtMatmul, handle, plan->product, alpha, b, plan->layouts[0],
            a, plan->layouts[1], args.accumulate ? alpha : none, c,
            plan->layouts[2], c, plan->layouts[2], &plan->algorithm,
            workspace.get(), workspaceBytes, stream);
}

/// What is there before anything is multiplied: what C holds, or nothing, and
/// the bias.
void Gemm::runEmpty(const tprt_gemm_args &args, std::byte *c, const void *bias,
                    CudaStream &stream) {
  if (args.accumulate && bias)
    throw executionError("tprt_gemm: both accumulating and a bias, of f64 or "
                         "over no elements, aren't supported on CUDA devices");
  if (args.accumulate)
    return;
  int64_t width = byteWidth(static_cast<Dtype>(args.dtype));
  for (int64_t b0 = 0; b0 < args.batch0; ++b0)
    for (int64_t b1 = 0; b1 < args.batch1; ++b1)
      for (int64_t i = 0; i < args.m; ++i) {
        std::byte *row =
            c + (b0 * args.c_b0 + b1 * args.c_b1 + i * args.c_row) * width;
        if (bias)
          stream.copy(row, bias, args.n * width);
        else
          stream.fill(row, 0, 1, args.n * width);
      }
}

void Gemm::run(const tprt_gemm_args &args, const void *a, const void *b,
               void *c, const void *bias, CudaStream &stream) {
  toCudaType(args.dtype); // throws where it is none of them
  if (args.m <= 0 || args.n <= 0 || args.batch0 <= 0 || args.batch1 <= 0)
    return;
  if (args.k <= 0)
    return runEmpty(args, static_cast<std::byte *>(c), bias, stream);
  if (!handle) {
    const Blas &blas = Blas::get();
    TPRT_BLAS(cublasLtCreate, &handle);
    workspace = allocate(context, workspaceBytes);
  }
  // Two batch dimensions that are walked as one become one; else one call each
  // for the outer one.
  tprt_gemm_args batch = args;
  if (args.dtype == TPRT_F64 && bias) { // for which there is no epilogue
    runEmpty(args, static_cast<std::byte *>(c), bias, stream);
    batch.accumulate = 1;
    bias = nullptr;
  }
  batch.batch0 = 1;
  batch.a_b0 = batch.b_b0 = batch.c_b0 = 0;
  int64_t calls = args.batch0;
  if (args.batch1 == 1) {
    batch.batch1 = args.batch0;
    batch.a_b1 = args.a_b0;
    batch.b_b1 = args.b_b0;
    batch.c_b1 = args.c_b0;
    calls = 1;
  } else if (args.a_b0 == args.batch1 * args.a_b1 &&
             args.b_b0 == args.batch1 * args.b_b1 &&
             args.c_b0 == args.batch1 * args.c_b1) {
    batch.batch1 *= args.batch0;
    calls = 1;
  }
  int64_t width = byteWidth(static_cast<Dtype>(args.dtype));
  auto advance = [&](auto *data, int64_t elements) {
    return reinterpret_cast<decltype(data)>(reinterpret_cast<uintptr_t>(data) +
                                            elements * width);
  };
  for (int64_t i = 0; i < calls; ++i)
    runBatch(batch, advance(a, i * args.a_b0), advance(b, i * args.b_b0),
             advance(c, i * args.c_b0), bias, stream.get());
}
