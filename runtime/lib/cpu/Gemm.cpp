//===- Gemm.cpp - Batched matrix products ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f32, f16 and bf16 are multiplied in tiles. The right operand is packed by
// column blocks or, if it is a weight, once for all calls. Results of f16 and
// bf16 are computed in f32 by blocks, and rounded once. OpenBLAS computes f64
// and vectors. Some products of f32 are computed by a library, see
// GemmChoice.h.
//
//===----------------------------------------------------------------------===//

#include "cpu/Gemm.h"

#include "cpu/Activation.h"
#include "cpu/OneDnn.h"
#include "support/Division.h"
#include "support/Parallel.h"
#include "tprt/Tensor.h"

#include <algorithm>
#include <cblas.h>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <type_traits>
#include <utility>

using namespace tprt;

/// Columns of B and rows of A that are packed or converted at a time. Large
/// enough that this costs little compared to the product, and small enough that
/// the blocks of a usual k stay in the caches.
static constexpr int64_t blockColumns = 512;
static constexpr int64_t blockRows = 256;

/// With fewer rows, packing B costs more than OpenBLAS's disadvantage.
static constexpr int64_t minRowsToPack = 4;

static constexpr int64_t maxBlasSize = std::numeric_limits<blasint>::max();

/// A product of fewer operations is finished before another thread has started.
static constexpr double minWorkOfThread = 1e7;

/// Calls OpenBLAS with `numThreads` threads. OpenBLAS has one number of threads
/// for the whole process, so calls that need different numbers wait for each
/// other.
template <typename Call>
static void callOpenBlas(int64_t numThreads, Call call) {
  static std::shared_mutex mutex;
  static int64_t current = 0;
  {
    std::shared_lock lock(mutex);
    if (current == numThreads)
      return call();
  }
  std::unique_lock lock(mutex);
  openblas_set_num_threads(numThreads);
  current = numThreads;
  call();
}

//===----------------------------------------------------------------------===//
// GemmState
//===----------------------------------------------------------------------===//

int64_t GemmState::countThreads(double operations, int64_t numParts) const {
  double most = std::min(numThreads, numParts);
  return std::max(1.0, std::min(operations / minWorkOfThread, most));
}

float *GemmState::getFloats(int64_t count) {
  if (count > capacity) {
    floats = allocateAligned(count * sizeof(float));
    capacity = count;
  }
  return reinterpret_cast<float *>(floats.get());
}

GemmState &GemmState::getHelper(int64_t thread) {
  if (thread == 0)
    return *this;
  while (static_cast<int64_t>(helpers.size()) < thread)
    helpers.push_back(std::make_unique<GemmState>());
  return *helpers[thread - 1];
}

void GemmState::setConstants(std::shared_ptr<ConstantOperands> value) {
  packed.clear();
  constants = std::move(value);
}

template <typename S>
const S *GemmState::getPacked(Matrix<const S> b, int64_t k, int64_t n) {
  if (!constants)
    return nullptr;
  Key key{reinterpret_cast<intptr_t>(b.data), b.row, b.col, k, n};
  auto entry = packed.find(key);
  if (entry == packed.end())
    entry = packed.emplace(key, constants->getPacked(b, k, n)).first;
  return static_cast<const S *>(entry->second);
}

/// Whether all batches multiply by the same B.
static bool hasOneB(const tprt_gemm_args &args) {
  return (args.batch0 == 1 || args.b_b0 == 0) &&
         (args.batch1 == 1 || args.b_b1 == 0);
}

GemmLibrary GemmState::getLibrary(const tprt_gemm_args &args,
                                  const void *b) const {
  if (!choices)
    return GemmLibrary::Tiles;
  if (choices->library)
    return *choices->library;
  if (2.0 * args.m * args.n * args.k < minMeasuredWork)
    return GemmLibrary::Tiles;
  return choices->get(
      getProduct(args, hasOneB(args) && constants && constants->contain(b)));
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

namespace {

/// An operand in BLAS's terms.
struct Layout {
  CBLAS_TRANSPOSE transpose;
  int64_t leading;
};

} // namespace

/// How BLAS reads a rows x cols matrix with these strides; `leading` is 0 if it
/// can't. The stride of a dimension of size 1 isn't used, but BLAS requires a
/// valid one.
static Layout getLayout(int64_t rows, int64_t cols, int64_t rowStride,
                        int64_t colStride) {
  int64_t alongRows = rows == 1 ? cols : rowStride;
  if ((colStride == 1 || cols == 1) && alongRows >= cols)
    return {CblasNoTrans, alongRows};
  int64_t alongCols = cols == 1 ? rows : colStride;
  if ((rowStride == 1 || rows == 1) && alongCols >= rows)
    return {CblasTrans, alongCols};
  return {CblasNoTrans, 0};
}

/// C = A * B + beta * C.
template <typename T>
static void callGemm(GemmLibrary library, Layout layoutA, Layout layoutB,
                     int64_t m, int64_t n, int64_t k, const T *a, const T *b,
                     T beta, T *c, int64_t leadingC, const GemmState &state) {
  if constexpr (std::is_same_v<T, float>)
    if (library == GemmLibrary::OneDnn)
      return OneDnn::get()->multiply(layoutA.transpose == CblasTrans,
                                     layoutB.transpose == CblasTrans, m, n, k,
                                     a, layoutA.leading, b, layoutB.leading,
                                     beta, c, leadingC, state.getThreads());
  auto *function = [] {
    if constexpr (std::is_same_v<T, float>)
      return cblas_sgemm;
    else
      return cblas_dgemm;
  }();
  callOpenBlas(state.getOpenBlasThreads(), [&] {
    function(CblasRowMajor, layoutA.transpose, layoutB.transpose, m, n, k, T(1),
             a, layoutA.leading, b, layoutB.leading, beta, c, leadingC);
  });
}

/// y += M * x, or M^T * x when `isTransposed`, for a rows x cols matrix M.
template <typename T>
static void callGemv(Layout layout, bool isTransposed, int64_t rows,
                     int64_t cols, const T *matrix, const T *x, int64_t strideX,
                     T *y, int64_t strideY, const GemmState &state) {
  auto *function = [] {
    if constexpr (std::is_same_v<T, float>)
      return cblas_sgemv;
    else
      return cblas_dgemv;
  }();
  // To BLAS, a matrix stored by columns is its transpose stored by rows.
  if (layout.transpose == CblasTrans) {
    std::swap(rows, cols);
    isTransposed = !isTransposed;
  }
  callOpenBlas(state.getOpenBlasThreads(), [&] {
    function(CblasRowMajor, isTransposed ? CblasTrans : CblasNoTrans, rows,
             cols, T(1), matrix, layout.leading, x, strideX, T(1), y, strideY);
  });
}

/// Sets C to the values that the product is added to: zero or the addend, plus
/// bias.
template <typename T>
static void prepareResult(const tprt_gemm_args &args, T *c,
                          const Epilogue<T> &epilogue) {
  for (int64_t i = 0; i < args.m; ++i) {
    T *row = c + i * args.c_row;
    const Epilogue<T> part = epilogue.at(i, 0);
    if (!part.addend && part.bias) {
      std::copy_n(part.bias, args.n, row);
      continue;
    }
    if (!part.addend)
      std::fill_n(row, args.n, T(0));
    else if (part.addend != row)
      std::copy_n(part.addend, args.n, row);
    if (part.bias)
      for (int64_t j = 0; j < args.n; ++j)
        row[j] += part.bias[j];
  }
}

/// C = A * B if `overwrites`, else C += A * B, by a library. OpenBLAS computes
/// all products with vectors.
template <typename T>
static void callLibrary(GemmLibrary library, const tprt_gemm_args &args,
                        const T *a, const T *b, T *c, bool overwrites,
                        const GemmState &state) {
  Layout layoutA = getLayout(args.m, args.k, args.a_row, args.a_col);
  Layout layoutB = getLayout(args.k, args.n, args.b_row, args.b_col);
  int64_t leadingC = args.m == 1 ? std::max(args.c_row, args.n) : args.c_row;
  if (args.m == 1) {
    int64_t strideX = args.k == 1 ? 1 : args.a_col;
    callGemv(layoutB, /*isTransposed=*/true, args.k, args.n, b, a, strideX, c,
             1, state);
  } else if (args.n == 1) {
    int64_t strideX = args.k == 1 ? 1 : args.b_row;
    callGemv(layoutA, /*isTransposed=*/false, args.m, args.k, a, b, strideX, c,
             args.c_row, state);
  } else {
    callGemm(library, layoutA, layoutB, args.m, args.n, args.k, a, b,
             T(overwrites ? 0 : 1), c, leadingC, state);
  }
}

/// One product by a library.
template <typename T>
static void multiplyByLibrary(GemmLibrary library, const tprt_gemm_args &args,
                              const T *a, const T *b, T *c,
                              const Epilogue<T> &epilogue,
                              const GemmState &state) {
  bool isVector = args.m == 1 || args.n == 1;
  // A product with nothing added overwrites C; the others add to the prepared
  // values.
  bool overwrites =
      !epilogue.addend && !epilogue.bias && !isVector && args.k > 0;
  if (!overwrites)
    prepareResult(args, c, epilogue);
  if (args.k > 0)
    callLibrary(library, args, a, b, c, overwrites, state);
  if (epilogue.activation != TPRT_NO_ACTIVATION || epilogue.factor)
    activate(epilogue.activation, args.m, args.n, c, args.c_row,
             epilogue.factor, epilogue.rowFactor);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// multiplyPacked with the columns distributed over the rank's threads.
template <typename S>
static void multiplyByThreads(int64_t m, int64_t n, int64_t k,
                              Matrix<const S> a, Packed<S> b, float *c,
                              int64_t rowC, const Epilogue<float> &epilogue,
                              const GemmState &state) {
  const int64_t panel = getPanelColumns<S>();
  int64_t numPanels = divideCeil(n, panel);
  int64_t numParts = state.countThreads(2.0 * m * n * k, numPanels);
  parallelFor(numParts, numParts, [&](int64_t part) {
    int64_t begin = numPanels * part / numParts * panel;
    int64_t end = std::min(n, numPanels * (part + 1) / numParts * panel);
    multiplyPacked<S>(m, end - begin, k, a, b.at(0, begin), c + begin, rowC,
                      epilogue.at(0, begin));
  });
}

/// Converts `source` to f32 in `block`. Returns null if `source` is null.
template <typename T>
static const float *convertRows(Dtype dtype, const T *source, int64_t rowSource,
                                int64_t rows, int64_t cols, float *block) {
  if (!source)
    return nullptr;
  for (int64_t r = 0; r < rows; ++r)
    convertToF32(dtype, source + r * rowSource, block + r * cols, cols);
  return block;
}

/// One product of f32, f16 or bf16. `packed` is B if it has been packed before,
/// else null.
template <typename S>
static void multiplyTiles(const tprt_gemm_args &args, const S *a, const S *b,
                          const S *packed, S *c, const Epilogue<S> &epilogue,
                          GemmState &state) {
  constexpr bool isHalf = !std::is_same_v<S, float>;
  Dtype dtype = static_cast<Dtype>(args.dtype);
  int64_t maxRows = std::min(args.m, blockRows);
  int64_t maxCols = std::min(args.n, blockColumns);
  Matrix<const S> matrixA{a, args.a_row, args.a_col};
  Matrix<const S> matrixB{b, args.b_row, args.b_col};

  int64_t packedSize = packed ? 0 : getPackedSize<S>(args.k, maxCols);
  int64_t packedFloats = packedSize * sizeof(S) / sizeof(float);
  int64_t blockSize = isHalf ? maxRows * maxCols : 0;
  float *floats =
      state.getFloats(packedFloats + 2 * blockSize + (isHalf ? maxCols : 0));
  S *blockB = reinterpret_cast<S *>(floats);
  float *blockC = floats + packedFloats;
  float *blockFactor = blockC + blockSize;
  float *blockBias = blockFactor + blockSize;

  for (int64_t j = 0; j < args.n; j += maxCols) {
    int64_t cols = std::min(maxCols, args.n - j);
    if (!packed)
      pack<S>({&matrixB.at(0, j), args.b_row, args.b_col}, args.k, cols,
              blockB);
    Packed<S> right =
        packed ? Packed<S>{packed, args.k}.at(0, j) : Packed<S>{blockB, args.k};
    if constexpr (!isHalf) {
      multiplyByThreads(args.m, cols, args.k, matrixA, right, c + j, args.c_row,
                        epilogue.at(0, j), state);
    } else {
      const float *bias =
          convertRows(dtype, epilogue.at(0, j).bias, 0, 1, cols, blockBias);
      for (int64_t i = 0; i < args.m; i += maxRows) {
        int64_t rows = std::min(maxRows, args.m - i);
        S *result = c + i * args.c_row + j;
        const Epilogue<S> part = epilogue.at(i, j);
        const float *addend =
            convertRows(dtype, part.addend, part.rowAddend, rows, cols, blockC);
        const float *factor = convertRows(dtype, part.factor, part.rowFactor,
                                          rows, cols, blockFactor);
        multiplyByThreads<S>(rows, cols, args.k,
                             {&matrixA.at(i, 0), args.a_row, args.a_col}, right,
                             blockC, cols,
                             {.bias = bias,
                              .addend = addend,
                              .rowAddend = cols,
                              .activation = epilogue.activation,
                              .factor = factor,
                              .rowFactor = cols},
                             state);
        for (int64_t r = 0; r < rows; ++r)
          convertFromF32(dtype, blockC + r * cols, result + r * args.c_row,
                         cols);
      }
    }
  }
}

/// One product of f32.
static void multiply(GemmLibrary library, const tprt_gemm_args &args,
                     const float *a, const float *b, const float *packed,
                     float *c, const Epilogue<float> &epilogue,
                     GemmState &state) {
  // A product with a vector reuses nothing.
  bool isSmall = args.m < minRowsToPack || args.n == 1;
  if (library == GemmLibrary::Tiles && !packed && isSmall)
    library = GemmLibrary::OpenBlas;
  if (library != GemmLibrary::Tiles)
    multiplyByLibrary(library, args, a, b, c, epilogue, state);
  else
    multiplyTiles(args, a, b, packed, c, epilogue, state);
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// Folds batches that share B, and that follow each other by rows in A, C and
/// the matrices like C, into one product with more rows.
static void foldBatches(tprt_gemm_args &args, const GemmOperands &operands) {
  auto fold = [&](int64_t &batch, int64_t strideA, int64_t strideB,
                  int64_t strideC, int64_t strideAddend, int64_t strideFactor) {
    if (batch == 1 || strideB != 0 || args.a_col != 1 || args.a_row < args.k ||
        args.c_row < args.n || strideA != args.m * args.a_row ||
        strideC != args.m * args.c_row || args.m * batch > maxBlasSize ||
        (operands.addend && strideAddend != args.m * args.addend_row) ||
        (operands.factor && strideFactor != args.m * args.factor_row))
      return;
    args.m *= batch;
    batch = 1;
  };
  fold(args.batch1, args.a_b1, args.b_b1, args.c_b1, args.addend_b1,
       args.factor_b1);
  if (args.batch1 == 1)
    fold(args.batch0, args.a_b0, args.b_b0, args.c_b0, args.addend_b0,
         args.factor_b0);
}

Product tprt::getProduct(const tprt_gemm_args &given, bool isWeight) {
  tprt_gemm_args args = given;
  foldBatches(args, /*operands=*/{}); // not all of them are in the manifest
  Layout layoutA = getLayout(args.m, args.k, args.a_row, args.a_col);
  Layout layoutB = getLayout(args.k, args.n, args.b_row, args.b_col);
  return {args.m,
          args.n,
          args.k,
          layoutA.transpose == CblasTrans,
          layoutB.transpose == CblasTrans,
          isWeight};
}

template <typename T>
static void multiplyBatches(const tprt_gemm_args &args,
                            const GemmOperands &operands, GemmState &state) {
  const T *packed = nullptr;
  GemmLibrary library = GemmLibrary::Tiles;
  if constexpr (std::is_same_v<T, float>)
    library = state.getLibrary(args, operands.b);
  if constexpr (!std::is_same_v<T, double>)
    if (library == GemmLibrary::Tiles && hasOneB(args) && args.n > 1 &&
        args.k > 0)
      packed = state.getPacked<T>(
          {static_cast<const T *>(operands.b), args.b_row, args.b_col}, args.k,
          args.n);
  const void *allB = packed ? operands.b : state.getReadable(operands.b);
  auto at = [](const void *data, int64_t offset) {
    return data ? static_cast<const T *>(data) + offset : nullptr;
  };
  for (int64_t i = 0; i < args.batch0; ++i)
    for (int64_t j = 0; j < args.batch1; ++j) {
      const T *a = at(operands.a, i * args.a_b0 + j * args.a_b1);
      const T *b = at(allB, i * args.b_b0 + j * args.b_b1);
      T *c = static_cast<T *>(operands.c) + i * args.c_b0 + j * args.c_b1;
      Epilogue<T> epilogue;
      epilogue.bias = static_cast<const T *>(operands.bias);
      if (args.accumulate) {
        epilogue.addend = c;
        epilogue.rowAddend = args.c_row;
      } else {
        epilogue.addend =
            at(operands.addend, i * args.addend_b0 + j * args.addend_b1);
        epilogue.rowAddend = args.addend_row;
      }
      epilogue.activation = args.activation;
      epilogue.factor =
          at(operands.factor, i * args.factor_b0 + j * args.factor_b1);
      epilogue.rowFactor = args.factor_row;
      if constexpr (std::is_same_v<T, double>)
        multiplyByLibrary(GemmLibrary::OpenBlas, args, a, b, c, epilogue,
                          state);
      else if constexpr (std::is_same_v<T, float>)
        multiply(library, args, a, b, packed, c, epilogue, state);
      else
        multiplyTiles(args, a, b, packed, c, epilogue, state);
    }
}

static void check(const tprt_gemm_args &args, const GemmOperands &operands) {
  auto require = [](bool holds, const char *what) {
    if (!holds)
      throw executionError(std::string("tprt_gemm: ") + what);
  };
  constexpr int64_t limit = maxBlasSize;
  require(args.dtype >= TPRT_F32 && args.dtype <= TPRT_BF16,
          "dtype is not f32, f64, f16 or bf16");
  for (int64_t size : {args.batch0, args.batch1, args.m, args.n, args.k})
    require(size >= 0 && size <= limit, "a size is out of range");
  for (int64_t stride : {args.a_row, args.a_col, args.b_row, args.b_col})
    require(stride >= 0 && stride <= limit, "a stride is out of range");
  require(args.m <= 1 || (args.c_row >= args.n && args.c_row <= limit),
          "the row stride of C is less than its columns");
  bool isEmpty = args.m == 0 || args.n == 0 || args.k == 0;
  require(isEmpty || getLayout(args.m, args.k, args.a_row, args.a_col).leading,
          "neither stride of A is 1, or its rows overlap");
  require(isEmpty || getLayout(args.k, args.n, args.b_row, args.b_col).leading,
          "neither stride of B is 1, or its rows overlap");
  require(args.activation >= TPRT_NO_ACTIVATION && args.activation <= TPRT_SILU,
          "the activation is unknown");
  require(!args.accumulate || !operands.addend,
          "a product that accumulates can't have an addend");
}

void tprt::gemm(const tprt_gemm_args &given, const GemmOperands &all,
                GemmState &state) {
  check(given, all);
  tprt_gemm_args args = given;
  GemmOperands operands = all;
  if (args.k == 0) { // A and B may be null; they aren't read
    static constexpr double nothing = 0;
    operands.a = operands.b = &nothing;
  }
  foldBatches(args, operands);
  if (args.m == 0 || args.n == 0)
    return;
  switch (static_cast<Dtype>(args.dtype)) {
  case Dtype::F32:
    return multiplyBatches<float>(args, operands, state);
  case Dtype::F64:
    return multiplyBatches<double>(args, operands, state);
  case Dtype::F16:
    return multiplyBatches<Half>(args, operands, state);
  default:
    return multiplyBatches<BFloat16>(args, operands, state);
  }
}
