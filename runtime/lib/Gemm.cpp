//===- Gemm.cpp - Batched matrix products --------------------------------===//
//
// f32 and f64 go to OpenBLAS as they are. f16 and bf16 are converted by column
// blocks of B and row blocks of A to f32, multiplied there, and rounded once.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"

#include "tprt/Dtype.h"

#include <algorithm>
#include <cblas.h>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

using namespace tprt;

/// Columns of B and rows of A that are converted at a time. Wide enough that
/// conversion costs little beside the product, small enough that the blocks of
/// a common k stay in the second-level cache.
static constexpr int64_t convertedColumns = 256;
static constexpr int64_t convertedRows = 256;

static constexpr int64_t maxBlasSize = std::numeric_limits<blasint>::max();

void tprt::setBlasThreads(int count) { openblas_set_num_threads(count); }

float *GemmScratch::getFloats(int64_t count) {
  if (count > capacity) {
    floats.reset(new float[count]);
    capacity = count;
  }
  return floats.get();
}

namespace {

/// A matrix operand: where element (i, j) is.
template <typename T>
struct Matrix {
  T *data;
  int64_t row, col; ///< strides in elements

  T &at(int64_t i, int64_t j) const { return data[i * row + j * col]; }
};

/// An operand as BLAS wants it.
struct Layout {
  CBLAS_TRANSPOSE transpose;
  int64_t leading;
};

} // namespace

/// How BLAS reads a rows x cols matrix of these strides; leading 0 when it
/// can't. The stride of a dimension of size 1 is never used, and BLAS insists
/// on one that fits.
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
static void callGemm(Layout layoutA, Layout layoutB, int64_t m, int64_t n,
                     int64_t k, const T *a, const T *b, T beta, T *c,
                     int64_t leadingC) {
  auto *function = [] {
    if constexpr (std::is_same_v<T, float>)
      return cblas_sgemm;
    else
      return cblas_dgemm;
  }();
  function(CblasRowMajor, layoutA.transpose, layoutB.transpose, m, n, k, T(1),
           a, layoutA.leading, b, layoutB.leading, beta, c, leadingC);
}

/// y += M * x, or M^T * x when `isTransposed`, for a rows x cols matrix M.
template <typename T>
static void callGemv(Layout layout, bool isTransposed, int64_t rows,
                     int64_t cols, const T *matrix, const T *x, int64_t strideX,
                     T *y, int64_t strideY) {
  auto *function = [] {
    if constexpr (std::is_same_v<T, float>)
      return cblas_sgemv;
    else
      return cblas_dgemv;
  }();
  // What is stored by columns is, to BLAS, the transpose stored by rows.
  if (layout.transpose == CblasTrans) {
    std::swap(rows, cols);
    isTransposed = !isTransposed;
  }
  function(CblasRowMajor, isTransposed ? CblasTrans : CblasNoTrans, rows, cols,
           T(1), matrix, layout.leading, x, strideX, T(1), y, strideY);
}

/// What C holds before the product is added: zero or itself, plus bias.
template <typename T>
static void prepareResult(const tprt_gemm_args &args, T *c, const T *bias) {
  for (int64_t i = 0; i < args.m; ++i) {
    T *row = c + i * args.c_row;
    if (!args.accumulate && bias)
      std::copy_n(bias, args.n, row);
    else if (!args.accumulate)
      std::fill_n(row, args.n, T(0));
    else if (bias)
      for (int64_t j = 0; j < args.n; ++j)
        row[j] += bias[j];
  }
}

/// One product of f32 or f64.
template <typename T>
static void multiply(const tprt_gemm_args &args, const T *a, const T *b, T *c,
                     const T *bias) {
  bool isVector = args.m == 1 || args.n == 1;
  // A product without bias writes C; the others add to what is prepared.
  bool overwrites = !args.accumulate && !bias && !isVector && args.k > 0;
  if (!overwrites)
    prepareResult(args, c, bias);
  if (args.k == 0)
    return;
  Layout layoutA = getLayout(args.m, args.k, args.a_row, args.a_col);
  Layout layoutB = getLayout(args.k, args.n, args.b_row, args.b_col);
  int64_t leadingC = args.m == 1 ? std::max(args.c_row, args.n) : args.c_row;
  if (args.m == 1) {
    int64_t strideX = args.k == 1 ? 1 : args.a_col;
    callGemv(layoutB, /*isTransposed=*/true, args.k, args.n, b, a, strideX, c,
             1);
  } else if (args.n == 1) {
    int64_t strideX = args.k == 1 ? 1 : args.b_row;
    callGemv(layoutA, /*isTransposed=*/false, args.m, args.k, a, b, strideX, c,
             args.c_row);
  } else {
    callGemm(layoutA, layoutB, args.m, args.n, args.k, a, b,
             T(overwrites ? 0 : 1), c, leadingC);
  }
}

/// Converts rows x cols elements to a dense f32 block in the source's order, so
/// that both sides are read and written along memory. Returns the block's
/// strides.
template <typename T>
static Matrix<float> convertBlock(Dtype dtype, Matrix<const T> source,
                                  int64_t rows, int64_t cols, float *block) {
  bool isByColumns = source.row == 1 && (source.col != 1 || cols == 1);
  if (isByColumns) {
    for (int64_t j = 0; j < cols; ++j)
      convertToF32(dtype, &source.at(0, j), block + j * rows, rows);
    return {block, 1, rows};
  }
  for (int64_t i = 0; i < rows; ++i) {
    if (source.col == 1) {
      convertToF32(dtype, &source.at(i, 0), block + i * cols, cols);
      continue;
    }
    for (int64_t j = 0; j < cols; ++j) // a vector of another stride
      convertToF32(dtype, &source.at(i, j), block + i * cols + j, 1);
  }
  return {block, cols, 1};
}

/// One product of f16 or bf16.
template <typename T>
static void multiply(const tprt_gemm_args &args, const T *a, const T *b, T *c,
                     const T *bias, GemmScratch &scratch) {
  Dtype dtype = static_cast<Dtype>(args.dtype);
  int64_t maxRows = std::min(args.m, convertedRows);
  int64_t maxCols = std::min(args.n, convertedColumns);
  float *blockA = scratch.getFloats(args.k * (maxRows + maxCols) +
                                    maxRows * maxCols + maxCols);
  float *blockB = blockA + maxRows * args.k;
  float *blockC = blockB + args.k * maxCols;
  float *blockBias = blockC + maxRows * maxCols;
  Matrix<const T> matrixA{a, args.a_row, args.a_col};
  Matrix<const T> matrixB{b, args.b_row, args.b_col};

  for (int64_t j = 0; j < args.n; j += maxCols) {
    int64_t cols = std::min(maxCols, args.n - j);
    Matrix<float> floatB =
        convertBlock<T>(dtype, {&matrixB.at(0, j), args.b_row, args.b_col},
                        args.k, cols, blockB);
    if (bias)
      convertToF32(dtype, bias + j, blockBias, cols);
    for (int64_t i = 0; i < args.m; i += maxRows) {
      int64_t rows = std::min(maxRows, args.m - i);
      Matrix<float> floatA =
          convertBlock<T>(dtype, {&matrixA.at(i, 0), args.a_row, args.a_col},
                          rows, args.k, blockA);
      T *result = c + i * args.c_row + j;
      if (args.accumulate)
        for (int64_t r = 0; r < rows; ++r)
          convertToF32(dtype, result + r * args.c_row, blockC + r * cols, cols);
      tprt_gemm_args block = args;
      block.m = rows;
      block.n = cols;
      block.a_row = floatA.row;
      block.a_col = floatA.col;
      block.b_row = floatB.row;
      block.b_col = floatB.col;
      block.c_row = cols;
      multiply<float>(block, blockA, blockB, blockC,
                      bias ? blockBias : nullptr);
      for (int64_t r = 0; r < rows; ++r)
        convertFromF32(dtype, blockC + r * cols, result + r * args.c_row, cols);
    }
  }
}

/// Batches that share B and lie row after row in A and C are one product of
/// more rows.
static void foldBatches(tprt_gemm_args &args) {
  auto fold = [&](int64_t &batch, int64_t strideA, int64_t strideB,
                  int64_t strideC) {
    if (batch == 1 || strideB != 0 || args.a_col != 1 || args.a_row < args.k ||
        args.c_row < args.n || strideA != args.m * args.a_row ||
        strideC != args.m * args.c_row || args.m * batch > maxBlasSize)
      return;
    args.m *= batch;
    batch = 1;
  };
  fold(args.batch1, args.a_b1, args.b_b1, args.c_b1);
  if (args.batch1 == 1)
    fold(args.batch0, args.a_b0, args.b_b0, args.c_b0);
}

template <typename T>
static void multiplyBatches(const tprt_gemm_args &args, const void *a,
                            const void *b, void *c, const void *bias,
                            GemmScratch &scratch) {
  for (int64_t i = 0; i < args.batch0; ++i)
    for (int64_t j = 0; j < args.batch1; ++j) {
      const T *matrixA =
          static_cast<const T *>(a) + i * args.a_b0 + j * args.a_b1;
      const T *matrixB =
          static_cast<const T *>(b) + i * args.b_b0 + j * args.b_b1;
      T *matrixC = static_cast<T *>(c) + i * args.c_b0 + j * args.c_b1;
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
        multiply<T>(args, matrixA, matrixB, matrixC,
                    static_cast<const T *>(bias));
      else
        multiply<T>(args, matrixA, matrixB, matrixC,
                    static_cast<const T *>(bias), scratch);
    }
}

static void check(const tprt_gemm_args &args) {
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
}

void tprt::gemm(const tprt_gemm_args &given, const void *a, const void *b,
                void *c, const void *bias, GemmScratch &scratch) {
  check(given);
  tprt_gemm_args args = given;
  foldBatches(args);
  if (args.m == 0 || args.n == 0)
    return;
  switch (static_cast<Dtype>(args.dtype)) {
  case Dtype::F32:
    return multiplyBatches<float>(args, a, b, c, bias, scratch);
  case Dtype::F64:
    return multiplyBatches<double>(args, a, b, c, bias, scratch);
  case Dtype::F16:
    return multiplyBatches<Half>(args, a, b, c, bias, scratch);
  default:
    return multiplyBatches<BFloat16>(args, a, b, c, bias, scratch);
  }
}
