//===- Attention.cu - Attention of any type on a CUDA device -------------===//
//
// The source of Attention.ptx; see Reduce.cu. A block of threads computes one
// row of the output, tile by tile of the columns, with the softmax's maximum and
// sum carried along.
//
//===----------------------------------------------------------------------===//

#include "tprt/abi.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// In an unnamed namespace, names would depend on the path of this file.
namespace tprt_kernels {

constexpr int numThreads = 128;
constexpr int maxDepth = 1024; // maxAttentionDepth of Kernels.h
constexpr int perThread = maxDepth / numThreads;

/// AttentionArguments of Kernels.h.
struct Arguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
};

template <typename T>
struct Traits {
  using Acc = T;
};
template <>
struct Traits<__half> {
  using Acc = float;
};
template <>
struct Traits<__nv_bfloat16> {
  using Acc = float;
};

__device__ float load(const float *data, int64_t i) { return data[i]; }
__device__ double load(const double *data, int64_t i) { return data[i]; }
__device__ float load(const __half *data, int64_t i) {
  return __half2float(data[i]);
}
__device__ float load(const __nv_bfloat16 *data, int64_t i) {
  return __bfloat162float(data[i]);
}
__device__ void store(float *data, int64_t i, float value) { data[i] = value; }
__device__ void store(double *data, int64_t i, double value) {
  data[i] = value;
}
__device__ void store(__half *data, int64_t i, float value) {
  data[i] = __float2half_rn(value);
}
__device__ void store(__nv_bfloat16 *data, int64_t i, float value) {
  data[i] = __float2bfloat16_rn(value);
}
__device__ float exponential(float x) { return expf(x); }
__device__ double exponential(double x) { return exp(x); }

/// combine() of the values of all threads, for all of them.
template <typename Acc, typename Combine>
__device__ Acc reduceBlock(Acc value, Acc *scratch, Combine combine) {
  scratch[threadIdx.x] = value;
  __syncthreads();
#pragma unroll 1
  for (int half = numThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      scratch[threadIdx.x] =
          combine(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  Acc result = scratch[0];
  __syncthreads();
  return result;
}

/// Of batch `index`, row-major.
__device__ int64_t getOffset(const tprt_attention_args &args,
                             const tprt_attention_strides &strides,
                             int64_t index) {
  int64_t offset = 0;
#pragma unroll 1
  for (int d = TPRT_ATTENTION_BATCHES; d-- > 0;) {
    offset += index % args.batch[d] * strides.batch[d];
    index /= args.batch[d];
  }
  return offset;
}

template <typename T>
__device__ void attend(const Arguments &arguments) {
  using Acc = typename Traits<T>::Acc;
  const tprt_attention_args &args = arguments.args;
  __shared__ Acc query[maxDepth], scores[numThreads], scratch[numThreads];

  int64_t row = blockIdx.x % args.rows, batch = blockIdx.x / args.rows;
  const T *q = static_cast<const T *>(arguments.query) +
               getOffset(args, args.query, batch) + row * args.query.row;
  const T *k = static_cast<const T *>(arguments.key) +
               getOffset(args, args.key, batch);
  const T *v = static_cast<const T *>(arguments.value) +
               getOffset(args, args.value, batch);
  T *output = static_cast<T *>(arguments.output) +
              getOffset(args, args.output, batch) + row * args.output.row;
  int64_t mask = getOffset(args, args.mask_strides, batch) +
                 row * args.mask_strides.row;
  const Acc lowest = -INFINITY;

  for (int64_t d = threadIdx.x; d < args.depth; d += numThreads)
    query[d] = load(q, d * args.query.col);
  __syncthreads();

  Acc maximum = lowest, sum = 0, acc[perThread] = {};
  int64_t columns =
      args.causal && row + 1 < args.columns ? row + 1 : args.columns;
#pragma unroll 1
  for (int64_t first = 0; first < columns; first += numThreads) {
    int64_t column = first + threadIdx.x;
    Acc score = lowest;
    if (column < columns) {
      Acc dot = 0;
#pragma unroll 2
      for (int64_t d = 0; d < args.depth; ++d)
        dot += query[d] *
               load(k, column * args.key.row + d * args.key.col);
      score = dot * static_cast<Acc>(args.scale);
      int64_t at = mask + column * args.mask_strides.col;
      if (args.mask == TPRT_ADDED_MASK)
        score += load(static_cast<const T *>(arguments.mask), at);
      else if (args.mask == TPRT_BOOLEAN_MASK &&
               !static_cast<const uint8_t *>(arguments.mask)[at])
        score = lowest;
    }
    Acc highest = reduceBlock(score, scratch,
                              [](Acc a, Acc b) { return a > b ? a : b; });
    highest = highest > maximum ? highest : maximum;
    // Nothing is seen yet: no exponential of a difference of infinities.
    bool isEmpty = highest == lowest;
    Acc correction = isEmpty ? Acc(1) : exponential(maximum - highest);
    Acc p = column >= columns || (isEmpty && score == lowest)
                ? Acc(0)
                : exponential(score - highest);
    scores[threadIdx.x] = p;
    sum = sum * correction +
          reduceBlock(p, scratch, [](Acc a, Acc b) { return a + b; });
    maximum = highest;
    int64_t count = columns - first < numThreads ? columns - first : numThreads;
#pragma unroll
    for (int i = 0; i < perThread; ++i) {
      int64_t e = threadIdx.x + i * numThreads;
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
#pragma unroll
  for (int i = 0; i < perThread; ++i) {
    int64_t e = threadIdx.x + i * numThreads;
    if (e < args.width)
      store(output, e * args.output.col, acc[i] / sum);
  }
}

} // namespace tprt_kernels

using namespace tprt_kernels;

#define KERNEL(T, DTYPE)                                                       \
  extern "C" __global__ void __launch_bounds__(numThreads)                     \
      tprt_attention_##DTYPE(const __grid_constant__ Arguments a) {            \
    attend<T>(a);                                                              \
  }
KERNEL(float, f32)
KERNEL(double, f64)
KERNEL(__half, f16)
KERNEL(__nv_bfloat16, bf16)
