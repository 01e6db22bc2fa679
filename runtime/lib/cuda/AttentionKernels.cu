//===- AttentionKernels.cu - Attention of any type on a CUDA device -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of threads computes one row of the output, in tiles of columns, and
// updates the softmax's maximum and sum as it goes. Another kernel fixes the
// rows of cuDNN's output that see nothing, and one makes the added masks that
// cuDNN takes.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.cuh"

namespace tprt_kernels {

template <typename T>
__device__ void attend(const AttentionArguments &arguments) {
  using Acc = typename Traits<T>::Acc;
  const tprt_attention_args &args = arguments.args;
  __shared__ Acc query[maxAttentionDepth], scores[attentionThreads],
      scratch[attentionThreads];

  int64_t row = blockIdx.x % args.rows, batch = blockIdx.x / args.rows;
  const T *q = static_cast<const T *>(arguments.query) +
               getOffset(args, args.query, batch) + row * args.query.row;
  const T *k =
      static_cast<const T *>(arguments.key) + getOffset(args, args.key, batch);
  const T *v = static_cast<const T *>(arguments.value) +
               getOffset(args, args.value, batch);
  T *output = static_cast<T *>(arguments.output) +
              getOffset(args, args.output, batch) + row * args.output.row;
  int64_t mask =
      getOffset(args, args.mask_strides, batch) + row * args.mask_strides.row;
  const Acc lowest = -INFINITY;

  for (int64_t d = threadIdx.x; d < args.depth; d += attentionThreads)
    query[d] = load(q, d * args.query.col);
  __syncthreads();

  Acc maximum = lowest, sum = 0, acc[perThread] = {};
  int64_t columns =
      args.causal && row + 1 < args.columns ? row + 1 : args.columns;
#pragma unroll 1
  for (int64_t first = 0; first < columns; first += attentionThreads) {
    int64_t column = first + threadIdx.x;
    Acc score = lowest;
    if (column < columns) {
      Acc dot = 0;
#pragma unroll 2
      for (int64_t d = 0; d < args.depth; ++d)
        dot += query[d] * load(k, column * args.key.row + d * args.key.col);
      score = addMask<T>(args, arguments.mask,
                         mask + column * args.mask_strides.col,
                         dot * static_cast<Acc>(args.scale));
    }
    Acc highest =
        reduceBlock(score, scratch, [](Acc a, Acc b) { return a > b ? a : b; });
    highest = highest > maximum ? highest : maximum;
    // While nothing is seen yet, avoid the exponential of a difference of
    // infinities. If nothing is seen at all, the output is 0.
    bool isEmpty = highest == lowest;
    Acc correction = isEmpty ? Acc(1) : exponential(maximum - highest);
    Acc p = column >= columns || (isEmpty && score == lowest)
                ? Acc(0)
                : exponential(score - highest);
    scores[threadIdx.x] = p;
    sum = sum * correction +
          reduceBlock(p, scratch, [](Acc a, Acc b) { return a + b; });
    maximum = highest;
    int64_t count =
        columns - first < attentionThreads ? columns - first : attentionThreads;
#pragma unroll
    for (int i = 0; i < perThread; ++i) {
      int64_t e = threadIdx.x + i * attentionThreads;
      if (e >= args.width)
        continue;
      acc[i] *= correction;
#pragma unroll 2
      for (int64_t j = 0; j < count; ++j)
        acc[i] += scores[j] *
                  load(v, (first + j) * args.value.row + e * args.value.col);
    }
    __syncthreads();
  }
  Acc divisor = sum == 0 ? Acc(1) : sum;
#pragma unroll
  for (int i = 0; i < perThread; ++i) {
    int64_t e = threadIdx.x + i * attentionThreads;
    if (e < args.width)
      store(output, e * args.output.col, acc[i] / divisor);
  }
}

/// A block handles a row of one head. If the mask hides everything that the row
/// may see, its output and the logarithm of its sum become 0.
template <typename T>
__device__ void clearHiddenRow(const HiddenRowsArguments &a) {
  __shared__ float scratch[attentionThreads];
  int64_t row = blockIdx.x % a.rows;
  int64_t head = blockIdx.x / a.rows % a.heads;
  int64_t batch = blockIdx.x / a.rows / a.heads;
  auto getOffset = [&](const int64_t *strides) {
    return batch * strides[0] + head * strides[1] + row * strides[2];
  };
  const T *mask = static_cast<const T *>(a.mask) + getOffset(a.maskStrides);
  int64_t columns = a.causal && row + 1 < a.columns ? row + 1 : a.columns;
#pragma unroll 1
  for (int64_t first = 0; first < columns; first += attentionThreads) {
    int64_t column = first + threadIdx.x;
    bool isSeen = column < columns &&
                  !(load(mask, column * a.maskStrides[3]) == -INFINITY);
    if (reduceBlock(isSeen ? 1.0f : 0.0f, scratch,
                    [](float x, float y) { return x > y ? x : y; }) > 0)
      return;
  }
  T *output = static_cast<T *>(a.output) + getOffset(a.outputStrides);
  for (int64_t e = threadIdx.x; e < a.width; e += attentionThreads)
    store(output, e * a.outputStrides[3], 0.0f);
  if (threadIdx.x == 0)
    a.statistics[blockIdx.x] = 0;
}

/// A block makes a row. Rows of the result are padded to vectors.
template <typename T>
__device__ void addMaskRow(const AddedMaskArguments &a) {
  const tprt_attention_args &args = a.args;
  const auto *mask = static_cast<const uint8_t *>(a.mask);
  auto *added = static_cast<T *>(a.added);
  int64_t index = blockIdx.x;
  auto advance = [&](int64_t size, int64_t stride, int64_t given) {
    if (stride == 0)
      return;
    mask += index % size * given;
    added += index % size * stride;
    index /= size;
  };
  advance(args.rows, a.result.row, args.mask_strides.row);
#pragma unroll 1
  for (int d = TPRT_ATTENTION_BATCHES; d-- > 0;)
    advance(args.batch[d], a.result.batch[d], args.mask_strides.batch[d]);
  constexpr int size = Vector<T>::size;
#pragma unroll 1
  for (int64_t first = threadIdx.x * size; first < args.columns;
       first += attentionThreads * size) {
    Vector<T> values;
#pragma unroll
    for (int i = 0; i < size; ++i) {
      int64_t column = first + i < args.columns ? first + i : args.columns - 1;
      values.set(i, mask[column * args.mask_strides.col] ? 0.0f : -INFINITY);
    }
    values.store(added + first);
  }
}

} // namespace tprt_kernels

using namespace tprt_kernels;

#define KERNEL(T, DTYPE)                                                       \
  extern "C" __global__ void __launch_bounds__(attentionThreads)               \
      tprt_attention_##DTYPE(const __grid_constant__ AttentionArguments a) {   \
    attend<T>(a);                                                              \
  }
#define HIDDEN_ROWS(T, DTYPE)                                                  \
  extern "C" __global__ void __launch_bounds__(attentionThreads)               \
      tprt_attention_hidden_rows_##DTYPE(                                      \
          const __grid_constant__ HiddenRowsArguments a) {                     \
    clearHiddenRow<T>(a);                                                      \
  }
#define ADDED_MASK(T, DTYPE)                                                   \
  extern "C" __global__ void __launch_bounds__(attentionThreads)               \
      tprt_attention_added_mask_##DTYPE(                                       \
          const __grid_constant__ AddedMaskArguments a) {                      \
    addMaskRow<T>(a);                                                          \
  }
KERNEL(float, f32)
KERNEL(double, f64)
KERNEL(__half, f16)
KERNEL(__nv_bfloat16, bf16)
HIDDEN_ROWS(__half, f16)
HIDDEN_ROWS(__nv_bfloat16, bf16)
ADDED_MASK(__half, f16)
ADDED_MASK(__nv_bfloat16, bf16)
