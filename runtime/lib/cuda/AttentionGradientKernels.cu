//===- AttentionGradientKernels.cu - Gradients of attention on a device ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// There are two kernels, each of which adds in a fixed order. In the first one,
// a block of threads handles a row: it finds the softmax's statistics, which the
// second kernel reads, and sums the query's gradient over columns. In the second
// one, a block handles a column, and sums the gradients of its key and value
// over rows.
//
//===----------------------------------------------------------------------===//

#include "AttentionGradientArguments.h"
#include "AttentionKernels.cuh"

namespace tprt_kernels {

/// A row's maximum score, the factor of its exponentials, and the weighted mean
/// of the weights' gradients. Maximum and sum are kept apart, because the
/// logarithm of the sum would be lost when added to a large maximum.
template <typename Acc>
struct Statistics {
  Acc maximum, factor, mean;

  __device__ Acc getWeight(Acc score) const {
    return exponential(score - maximum) * factor;
  }
};
static_assert(sizeof(Statistics<float>) == numStatistics * sizeof(float));

/// The operands of one index of the batches, with one row or column of them in
/// shared memory.
template <typename T>
struct Head {
  using Acc = typename Traits<T>::Acc;

  __device__ Head(const AttentionGradientArguments &arguments, int64_t batch)
      : args(arguments.args.attention), maskData(arguments.mask),
        query(static_cast<const T *>(arguments.query) +
              getOffset(args, args.query, batch)),
        key(static_cast<const T *>(arguments.key) +
            getOffset(args, args.key, batch)),
        value(static_cast<const T *>(arguments.value) +
              getOffset(args, args.value, batch)),
        gradient(static_cast<const T *>(arguments.gradient) +
                 getOffset(args, args.output, batch)),
        mask(getOffset(args, args.mask_strides, batch)) {}

  __device__ static Acc dot(const Acc *kept, const T *data, int64_t stride,
                            int64_t count) {
    Acc sum = 0;
#pragma unroll 2
    for (int64_t d = 0; d < count; ++d)
      sum += kept[d] * load(data, d * stride);
    return sum;
  }

  __device__ Acc getScore(Acc product, int64_t row, int64_t column) const {
    return addMask<T>(args, maskData,
                      mask + row * args.mask_strides.row +
                          column * args.mask_strides.col,
                      product * static_cast<Acc>(args.scale));
  }

  const tprt_attention_args &args;
  const void *maskData;
  const T *query, *key, *value, *gradient;
  int64_t mask;
};

template <typename Acc>
__device__ Acc sumOfBlock(Acc value, Acc *scratch) {
  return reduceBlock(value, scratch, [](Acc a, Acc b) { return a + b; });
}

template <typename T>
__device__ void
computeQueryGradient(const AttentionGradientArguments &arguments) {
  using Acc = typename Traits<T>::Acc;
  __shared__ Acc query[maxAttentionDepth], gradient[maxAttentionDepth],
      factors[attentionThreads], scratch[attentionThreads];
  const tprt_attention_args &args = arguments.args.attention;
  int64_t row = blockIdx.x % args.rows, batch = blockIdx.x / args.rows;
  Head<T> head(arguments, batch);
  for (int64_t d = threadIdx.x; d < args.depth; d += attentionThreads)
    query[d] = load(head.query, row * args.query.row + d * args.query.col);
  for (int64_t e = threadIdx.x; e < args.width; e += attentionThreads)
    gradient[e] =
        load(head.gradient, row * args.output.row + e * args.output.col);
  __syncthreads();

  const Acc lowest = -INFINITY;
  int64_t columns =
      args.causal && row + 1 < args.columns ? row + 1 : args.columns;
  auto getScore = [&](int64_t column) {
    Acc product = Head<T>::dot(query, head.key + column * args.key.row,
                               args.key.col, args.depth);
    return head.getScore(product, row, column);
  };
  auto getWeightGradient = [&](int64_t column) {
    return Head<T>::dot(gradient, head.value + column * args.value.row,
                        args.value.col, args.width);
  };

  // Like attention itself, with the weights' gradients as values.
  Acc maximum = lowest, sum = 0, weighted = 0;
#pragma unroll 1
  for (int64_t first = 0; first < columns; first += attentionThreads) {
    int64_t column = first + threadIdx.x;
    bool isSeen = column < columns;
    Acc score = isSeen ? getScore(column) : lowest;
    Acc highest =
        reduceBlock(score, scratch, [](Acc a, Acc b) { return a > b ? a : b; });
    highest = highest > maximum ? highest : maximum;
    bool isEmpty = highest == lowest;
    Acc correction = isEmpty ? Acc(1) : exponential(maximum - highest);
    Acc p = !isSeen || (isEmpty && score == lowest)
                ? Acc(0)
                : exponential(score - highest);
    sum = sum * correction + sumOfBlock(p, scratch);
    weighted =
        weighted * correction +
        sumOfBlock(isSeen ? p * getWeightGradient(column) : Acc(0), scratch);
    maximum = highest;
  }
  // For a row that sees nothing, all scores are -inf, so any statistics give
  // weights of 0.
  Statistics<Acc> statistics = {0, 0, 0};
  if (sum != 0)
    statistics = {maximum, 1 / sum, weighted / sum};
  if (threadIdx.x == 0)
    static_cast<Statistics<Acc> *>(
        arguments.statistics)[batch * args.rows + row] = statistics;

  Acc acc[perThread] = {};
#pragma unroll 1
  for (int64_t first = 0; first < columns; first += attentionThreads) {
    int64_t column = first + threadIdx.x;
    if (column < columns)
      factors[threadIdx.x] = statistics.getWeight(getScore(column)) *
                             (getWeightGradient(column) - statistics.mean);
    __syncthreads();
    int64_t count =
        columns - first < attentionThreads ? columns - first : attentionThreads;
#pragma unroll
    for (int i = 0; i < perThread; ++i) {
      int64_t d = threadIdx.x + i * attentionThreads;
      if (d >= args.depth)
        continue;
#pragma unroll 2
      for (int64_t j = 0; j < count; ++j)
        acc[i] += factors[j] *
                  load(head.key, (first + j) * args.key.row + d * args.key.col);
    }
    __syncthreads();
  }
  const tprt_attention_strides &strides = arguments.args.query_gradient;
  T *result = static_cast<T *>(arguments.queryGradient) +
              getOffset(args, strides, batch) + row * strides.row;
#pragma unroll
  for (int i = 0; i < perThread; ++i) {
    int64_t d = threadIdx.x + i * attentionThreads;
    if (d < args.depth)
      store(result, d * strides.col, acc[i] * static_cast<Acc>(args.scale));
  }
}

template <typename T>
__device__ void
computeKeyGradient(const AttentionGradientArguments &arguments) {
  using Acc = typename Traits<T>::Acc;
  __shared__ Acc key[maxAttentionDepth], value[maxAttentionDepth],
      weights[attentionThreads], factors[attentionThreads];
  const tprt_attention_args &args = arguments.args.attention;
  int64_t column = blockIdx.x % args.columns, batch = blockIdx.x / args.columns;
  Head<T> head(arguments, batch);
  for (int64_t d = threadIdx.x; d < args.depth; d += attentionThreads)
    key[d] = load(head.key, column * args.key.row + d * args.key.col);
  for (int64_t e = threadIdx.x; e < args.width; e += attentionThreads)
    value[e] = load(head.value, column * args.value.row + e * args.value.col);
  __syncthreads();

  const Statistics<Acc> *statistics =
      static_cast<const Statistics<Acc> *>(arguments.statistics) +
      batch * args.rows;
  Acc keyAcc[perThread] = {}, valueAcc[perThread] = {};
#pragma unroll 1
  for (int64_t first = args.causal ? column : 0; first < args.rows;
       first += attentionThreads) {
    int64_t row = first + threadIdx.x;
    if (row < args.rows) {
      Acc product = Head<T>::dot(key, head.query + row * args.query.row,
                                 args.query.col, args.depth);
      Acc weight =
          statistics[row].getWeight(head.getScore(product, row, column));
      Acc weightGradient =
          Head<T>::dot(value, head.gradient + row * args.output.row,
                       args.output.col, args.width);
      weights[threadIdx.x] = weight;
      factors[threadIdx.x] = weight * (weightGradient - statistics[row].mean);
    }
    __syncthreads();
    int64_t count = args.rows - first < attentionThreads ? args.rows - first
                                                         : attentionThreads;
#pragma unroll
    for (int i = 0; i < perThread; ++i) {
      int64_t d = threadIdx.x + i * attentionThreads;
      if (d < args.depth)
#pragma unroll 2
        for (int64_t j = 0; j < count; ++j)
          keyAcc[i] +=
              factors[j] * load(head.query, (first + j) * args.query.row +
                                                d * args.query.col);
      if (d < args.width)
#pragma unroll 2
        for (int64_t j = 0; j < count; ++j)
          valueAcc[i] +=
              weights[j] * load(head.gradient, (first + j) * args.output.row +
                                                   d * args.output.col);
    }
    __syncthreads();
  }
  const tprt_attention_strides &keyStrides = arguments.args.key_gradient;
  const tprt_attention_strides &valueStrides = arguments.args.value_gradient;
  T *keyResult = static_cast<T *>(arguments.keyGradient) +
                 getOffset(args, keyStrides, batch) + column * keyStrides.row;
  T *valueResult = static_cast<T *>(arguments.valueGradient) +
                   getOffset(args, valueStrides, batch) +
                   column * valueStrides.row;
#pragma unroll
  for (int i = 0; i < perThread; ++i) {
    int64_t d = threadIdx.x + i * attentionThreads;
    if (d < args.depth)
      store(keyResult, d * keyStrides.col,
            keyAcc[i] * static_cast<Acc>(args.scale));
    if (d < args.width)
      store(valueResult, d * valueStrides.col, valueAcc[i]);
  }
}

} // namespace tprt_kernels

using namespace tprt_kernels;

#define KERNELS(T, DTYPE)                                                      \
  extern "C" __global__ void __launch_bounds__(attentionThreads, 6)            \
      tprt_attention_query_gradient_##DTYPE(                                   \
          const __grid_constant__ AttentionGradientArguments a) {              \
    computeQueryGradient<T>(a);                                                \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(attentionThreads, 6)            \
      tprt_attention_key_gradient_##DTYPE(                                     \
          const __grid_constant__ AttentionGradientArguments a) {              \
    computeKeyGradient<T>(a);                                                  \
  }
KERNELS(float, f32)
KERNELS(double, f64)
KERNELS(__half, f16)
KERNELS(__nv_bfloat16, bf16)
