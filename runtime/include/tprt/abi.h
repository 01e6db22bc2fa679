//===- abi.h - C ABI between generated programs and the runtime -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that an artifact's shared object imports from libtprt, the
// functions and the data that it exports, and the file's header. Compiler and
// runtime both include this file, so it uses neither's other headers.
// docs/Artifact.md is the contract. Any change here requires a new
// TPRT_ABI_VERSION.
//
// In a program for CUDA devices all pointers to data are pointers to the memory
// of the rank's device, which the code on the host passes on and never reads.
// Calls enqueue work: each piece begins when those before it are done, and the
// call returns once it is enqueued.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_ABI_H
#define TPRT_ABI_H

#include <stdint.h>

#define TPRT_ABI_VERSION 8

/// The value of "schema" in a manifest.
#define TPRT_MANIFEST_SCHEMA 5

/// The symbols that an artifact exports: a tpx_main_fn, and in a program for
/// CUDA devices a tprt_device_code.
#define TPRT_ENTRY_SYMBOL "tpx_main"
#define TPRT_DEVICE_CODE_SYMBOL "tprt_device_code"

#if defined(__GNUC__)
#define TPRT_API __attribute__((visibility("default")))
#else
#define TPRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The first bytes of an artifact, little-endian. The manifest and the shared
/// object follow.
#define TPRT_ARTIFACT_MAGIC "TPMLIRX"
typedef struct tprt_artifact_header {
  char magic[8]; ///< TPRT_ARTIFACT_MAGIC and its NUL
  uint32_t abi;  ///< TPRT_ABI_VERSION
  uint32_t reserved0;
  uint64_t manifest_size, object_size; ///< in bytes
  uint32_t crc; ///< CRC-32 of the manifest followed by the shared object
  uint32_t reserved1;
} tprt_artifact_header;

/// State of one rank: its communicator, its counters, its error. Owned by the
/// runtime, opaque to the program.
typedef struct tprt_rank tprt_rank;

/// Status of a runtime call. The program immediately returns the first one that
/// isn't TPRT_OK; the text of the error stays in the rank.
enum tprt_status {
  TPRT_OK = 0,
  TPRT_INDEX_OUT_OF_RANGE = 1, ///< reported by tprt_index_error
  TPRT_INVALID_ARGUMENT = 2,   ///< the program and its manifest don't agree
  TPRT_ABORTED = 3,  ///< another rank failed, or the ranks made no progress
  TPRT_INTERNAL = 4, ///< out of memory and the like
};

/// Element types, as numbered in tprt_gemm_args::dtype.
enum tprt_dtype {
  TPRT_F32 = 0,
  TPRT_F64 = 1,
  TPRT_F16 = 2,
  TPRT_BF16 = 3,
  TPRT_I64 = 4,
  TPRT_I32 = 5,
  TPRT_I1 = 6, ///< one byte, 0 or 1
  TPRT_I8 = 7,
  TPRT_I16 = 8,
  TPRT_UI8 = 9, ///< unsigned; the other integers are signed
};

/// An elementwise function that may be applied to a product, as numbered in
/// tprt_gemm_args::activation.
enum tprt_activation {
  TPRT_NO_ACTIVATION = 0,
  TPRT_RELU = 1,      ///< max(x, 0)
  TPRT_GELU = 2,      ///< x (1 + erf(x / sqrt(2))) / 2
  TPRT_GELU_TANH = 3, ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  TPRT_SILU = 4,      ///< x / (1 + exp(-x))
};

/// CUDA devices compute products of up to so many rows by own kernels, which
/// have every epilogue, unless they are batched or of f64, or the rows of A or
/// the columns of B aren't contiguous and aligned to 16 bytes.
enum { TPRT_FEW_ROWS = 8 };

/// A batched matrix product. All sizes and strides count elements. A is m x k,
/// B is k x n, C is m x n; one of (a_row, a_col) is 1, one of (b_row, b_col) is
/// 1, and C's column stride is 1. The stride of a dimension of size 1 is
/// ignored. A batch stride of 0 broadcasts A or B. The addend and the factor
/// are matrices like C with their own strides, which are ignored if the matrix
/// is absent.
typedef struct tprt_gemm_args {
  int32_t dtype;      ///< TPRT_F32 .. TPRT_BF16, of A, B, C and bias
  int32_t accumulate; ///< non-zero: add to C's values
  int64_t batch0, batch1;
  int64_t m, n, k;
  int64_t a_row, a_col, a_b0, a_b1;
  int64_t b_row, b_col, b_b0, b_b1;
  int64_t c_row, c_b0, c_b1;
  int64_t activation; ///< a tprt_activation
  int64_t addend_row, addend_b0, addend_b1;
  int64_t factor_row, factor_b0, factor_b1;
} tprt_gemm_args;

/// How an attention mask changes a score.
enum tprt_mask {
  TPRT_NO_MASK = 0,
  TPRT_ADDED_MASK = 1,   ///< of the other operands' dtype, added
  TPRT_BOOLEAN_MASK = 2, ///< bytes: -inf where 0
};

enum { TPRT_ATTENTION_BATCHES = 8 };

/// Strides of an operand of attention, in elements; 0 broadcasts.
typedef struct tprt_attention_strides {
  int64_t batch[TPRT_ATTENTION_BATCHES];
  int64_t row, col;
} tprt_attention_strides;

/// Batched attention. For every index of `batch`, query is rows x depth, key is
/// columns x depth, value columns x width, output rows x width, and mask rows x
/// columns. Operands that have the same address in consecutive batches, like
/// the key and value of a group of heads, are read once.
typedef struct tprt_attention_args {
  int32_t dtype; ///< TPRT_F32 .. TPRT_BF16
  int32_t mask;  ///< a tprt_mask
  double scale;
  int64_t causal; ///< non-zero: row i sees columns 0 .. i
  int64_t rows, columns, depth, width;
  int64_t batch[TPRT_ATTENTION_BATCHES];
  tprt_attention_strides query, key, value, mask_strides, output;
} tprt_attention_args;

/// The gradients of attention. The strides of `attention.output` are those of
/// its gradient; the results have the shapes of query, key and value, for every
/// index of `batch`.
typedef struct tprt_attention_gradient_args {
  tprt_attention_args attention;
  tprt_attention_strides query_gradient, key_gradient, value_gradient;
} tprt_attention_gradient_args;

/// Attention to a block of keys. `lse` has an element for each row. If
/// `attention.causal` isn't zero, row i sees columns 0 .. i + offset.
typedef struct tprt_attention_block_args {
  tprt_attention_args attention;
  tprt_attention_strides lse;
} tprt_attention_block_args;

/// The gradients of attention to a block of keys. `lse` and `delta` have an
/// element for each row.
typedef struct tprt_attention_block_gradient_args {
  tprt_attention_gradient_args gradient;
  tprt_attention_strides lse, delta;
} tprt_attention_block_gradient_args;

/// Products of groups of rows. A has `m` rows of `k` elements; group g consists
/// of rows bounds[g] to bounds[g + 1] - 1. All sizes and strides count elements;
/// C's column stride is 1, and one of the strides of rows and columns of A and
/// of B is 1.
typedef struct tprt_grouped_gemm_args {
  int32_t dtype;        ///< TPRT_F32 .. TPRT_BF16, of A, B and C
  int32_t bounds_dtype; ///< TPRT_I64 or TPRT_I32
  /// 0: B has a k x n matrix for each group, and C m rows of n elements. Else B
  /// has m rows of n elements, and C a k x n matrix for each group.
  int64_t sums_rows;
  int64_t groups, m, n, k;
  int64_t a_row, a_col;
  int64_t b_group, b_row, b_col;
  int64_t c_group, c_row;
} tprt_grouped_gemm_args;

enum { TPRT_CONVOLUTION_DIMS = 3 };

/// A convolution of dense tensors. The input is batch x (groups * in_channels)
/// x size, the weight (groups * out_channels) x in_channels x window, the
/// output batch x (groups * out_channels) x count. With fewer spatial
/// dimensions the first ones have size, window and count 1.
typedef struct tprt_convolution_args {
  int64_t dtype;      ///< TPRT_F32 .. TPRT_BF16, of all operands
  int64_t activation; ///< a tprt_activation
  int64_t batch, groups;
  int64_t in_channels, out_channels; ///< of one group
  int64_t size[TPRT_CONVOLUTION_DIMS], window[TPRT_CONVOLUTION_DIMS],
      count[TPRT_CONVOLUTION_DIMS];
  /// Element k of window p is element p * stride + k * dilation - padding of
  /// the input, which is 0 outside of its bounds.
  int64_t stride[TPRT_CONVOLUTION_DIMS], padding[TPRT_CONVOLUTION_DIMS],
      dilation[TPRT_CONVOLUTION_DIMS];
} tprt_convolution_args;

/// Sorting along the middle one of three dimensions, of dense arrays: the input
/// is outer x size x inner, the results are outer x count x inner.
typedef struct tprt_sort_args {
  int32_t dtype;      ///< any but TPRT_I1 and TPRT_UI8
  int32_t descending; ///< non-zero: the largest elements, the largest first
  int64_t outer, size, inner, count;
} tprt_sort_args;

/// How many threads run a kernel, as in cuLaunchKernel.
typedef struct tprt_launch_args {
  uint32_t grid[3], block[3]; ///< blocks of the grid, threads of a block
  uint32_t shared_bytes;      ///< of dynamic shared memory per block
} tprt_launch_args;

/// Where kernels report an index outside of [0, bound). There is one record for
/// each rank, in the device's memory. The first thread to change `site` from
/// -1, by an atomic compare-and-swap, writes the other members.
typedef struct tprt_device_error {
  int32_t site; ///< of tprt_device_code::sites; -1: none
  int32_t pad;
  int64_t index, bound;
} tprt_device_error;

/// The kernels for one architecture.
typedef struct tprt_device_image {
  int32_t arch;     ///< 90 for sm_90
  int32_t is_ptx;   ///< NUL-terminated PTX; else a cubin
  const void *data; ///< aligned to 8
  uint64_t size;    ///< in bytes, PTX's NUL included
} tprt_device_image;

/// What an artifact for CUDA devices exports. Every image contains all kernels.
/// The runtime tries the cubins of the device's major architecture, then PTX,
/// the newest first, until the driver accepts one.
typedef struct tprt_device_code {
  int32_t num_images;
  const tprt_device_image *images;
  int32_t num_kernels;
  const char *const *kernels; ///< their names in the images
  int32_t num_sites;
  const char *const *sites; ///< "FQN: op", as in tprt_index_error
} tprt_device_code;

/// Runs collective `id` of the manifest: reads the local operand at `src`,
/// writes the local result at `dst`. They don't overlap, except that src == dst
/// is allowed if this rank's operand and result have the same shape. Returns
/// when this rank's `dst` is complete and `src` may be overwritten.
TPRT_API int32_t tprt_collective(tprt_rank *ctx, int32_t id, const void *src,
                                 void *dst);

/// Starts collective `id`, which the manifest must mark as started. Until
/// tprt_collective_wait returns for it, the collective reads `src` and writes
/// `dst`, so nothing else may write `src`, or read or write `dst`. src == dst
/// is allowed in an all_reduce. Several collectives may be in flight. All ranks
/// start and run collectives in the same order, but may wait for them in any
/// order. One rank may start a collective that another one runs.
TPRT_API int32_t tprt_collective_start(tprt_rank *ctx, int32_t id,
                                       const void *src, void *dst);

/// Waits for collective `id`: when it returns, this rank's `dst` is complete
/// and `src` may be overwritten. Each started collective must be waited for
/// exactly once before it is started again, and before the program returns.
TPRT_API int32_t tprt_collective_wait(tprt_rank *ctx, int32_t id);

/// C[b0,b1] = activation(A[b0,b1] * B[b0,b1] (+ C when accumulate) (+ bias) (+
/// addend[b0,b1])) (* factor[b0,b1]), for b0 < batch0, b1 < batch1. `bias` is
/// null or holds n elements, which are added to each row. `addend` and `factor`
/// may be null, and don't overlap C. A product that accumulates has no addend.
/// f16 and bf16 are computed in f32 and rounded once; on CUDA devices twice if
/// a kernel of its own applies the epilogue.
TPRT_API int32_t tprt_gemm(tprt_rank *ctx, const tprt_gemm_args *args,
                           const void *a, const void *b, void *c,
                           const void *bias, const void *addend,
                           const void *factor);

/// output = softmax(query * key^T * scale + mask) * value. f16 and bf16 are
/// computed in f32 and rounded once. `mask` is null if there is none.
TPRT_API int32_t tprt_attention(tprt_rank *ctx, const tprt_attention_args *args,
                                const void *query, const void *key,
                                const void *value, const void *mask,
                                void *output);

/// Computes the gradients of tprt_attention's query, key and value from
/// `gradient`, the gradient of its output. Each index of the batches has its
/// own gradients, even of a key or value that it shares with others. The
/// gradients overlap nothing.
TPRT_API int32_t tprt_attention_gradient(
    tprt_rank *ctx, const tprt_attention_gradient_args *args, const void *query,
    const void *key, const void *value, const void *mask, const void *gradient,
    void *query_gradient, void *key_gradient, void *value_gradient);

/// Computes tprt_attention, and in `lse` the logarithm of the sum of the
/// exponentials of each row's scores: f32, or f64 for f64; -inf for a row that
/// sees nothing. `offset` is null unless the attention is causal. Only for the
/// host.
TPRT_API int32_t tprt_attention_block(tprt_rank *ctx,
                                      const tprt_attention_block_args *args,
                                      const void *query, const void *key,
                                      const void *value, const void *mask,
                                      const int64_t *offset, void *output,
                                      void *lse);

/// Computes the part of tprt_attention_gradient's results that a block of keys
/// gives. `lse` is the log-sum-exp of all of a row's scores, and `delta` the sum
/// of all of its probabilities times their gradients: f32, or f64 for f64. Only
/// for the host.
TPRT_API int32_t tprt_attention_block_gradient(
    tprt_rank *ctx, const tprt_attention_block_gradient_args *args,
    const void *query, const void *key, const void *value, const void *mask,
    const int64_t *offset, const void *gradient, const void *lse,
    const void *delta, void *query_gradient, void *key_gradient,
    void *value_gradient);

/// output = activation(convolution(input, weight) (* scale of the channel) (+
/// bias of the channel) (+ addend)). `scale` and `bias` are null or hold an
/// element per output channel. `addend` is null or like the output, which it
/// may be. f16 and bf16 are computed in f32 and rounded once.
TPRT_API int32_t tprt_convolution(tprt_rank *ctx,
                                  const tprt_convolution_args *args,
                                  const void *input, const void *weight,
                                  const void *scale, const void *bias,
                                  const void *addend, void *output);

/// For each group g, its rows of C = its rows of A * B[g]; rows in no group
/// become 0, and those in several ones a sum. With sums_rows, C[g] = (its rows of A)^T * its rows of B. f16 and
/// bf16 are computed in f32 and rounded once. Fails if a bound isn't in
/// [0, m].
TPRT_API int32_t tprt_grouped_gemm(tprt_rank *ctx,
                                   const tprt_grouped_gemm_args *args,
                                   const void *a, const void *b,
                                   const void *bounds, void *c);

/// The first `count` elements in order, and their positions in the input, as
/// i64. NaN counts as the largest number. Equal elements keep their order.
TPRT_API int32_t tprt_sort(tprt_rank *ctx, const tprt_sort_args *args,
                           const void *input, void *values, void *indices);

/// Runs iterations [begin, end) of a kernel. `arguments` holds the values of
/// its other parameters, 8 bytes each.
typedef void (*tprt_range_function)(const uint64_t *arguments, int64_t begin,
                                    int64_t end);

/// Calls `kernel` for ranges that together cover [0, count), each iteration
/// once, and returns when all are done. The ranges may run in any order and on
/// several threads. `nanoseconds` is an estimate of the time that all
/// iterations take on one core.
TPRT_API int32_t tprt_parallel(tprt_rank *ctx, tprt_range_function kernel,
                               const uint64_t *arguments, int64_t count,
                               int64_t nanoseconds);

/// Launches kernel `kernel` of tprt_device_code::kernels. `arguments` points to
/// the values of the kernel's parameters, in order. The caller may change them
/// when this returns.
TPRT_API int32_t tprt_launch(tprt_rank *ctx, int32_t kernel,
                             const tprt_launch_args *args,
                             void *const *arguments);

/// Copies within the device's memory; the ranges don't overlap.
TPRT_API int32_t tprt_copy(tprt_rank *ctx, void *dst, const void *src,
                           int64_t bytes);

/// Writes the lower `width` bytes of `pattern` (1, 2, 4 or 8, and `dst` is
/// aligned to it) `count` times.
TPRT_API int32_t tprt_fill(tprt_rank *ctx, void *dst, uint64_t pattern,
                           int32_t width, int64_t count);

/// This rank's tprt_device_error, in the device's memory; the same address in
/// every run.
TPRT_API void *tprt_error_record(tprt_rank *ctx);

/// Marks the code that follows, up to the next mark, call about a collective,
/// or return, as op `op` of the manifest. Does nothing unless the run is
/// recorded.
TPRT_API void tprt_mark(tprt_rank *ctx, int32_t op);

/// Reports an index outside of [0, bound). `what` is NUL-terminated text ("FQN:
/// op") that lives in the artifact. Returns TPRT_INDEX_OUT_OF_RANGE.
TPRT_API int32_t tprt_index_error(tprt_rank *ctx, const char *what,
                                  int64_t index, int64_t bound);

/// The entry point that an artifact exports: straight-line code that allocates
/// nothing. The pointers follow the manifest's order, each to this rank's dense
/// row-major local block, aligned to 64 bytes. Inputs are never written. The
/// only parameters that are written are those that the manifest marks as
/// updated: their blocks belong to this rank alone, and hold the new value when
/// the program returns. `arena` points to `arena_bytes` bytes, aligned to 64,
/// contents undefined.
typedef int32_t (*tpx_main_fn)(tprt_rank *ctx, int64_t rank,
                               const void *const *inputs,
                               void *const *parameters, void *const *outputs,
                               void *arena);

#ifdef __cplusplus
}
#endif

#endif // TPRT_ABI_H
