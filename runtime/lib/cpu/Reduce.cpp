//===- Reduce.cpp - Elementwise reduction of several operands -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Reduce.h"

#include "support/Multiversion.h"

#include <algorithm>
#include <type_traits>

using namespace tprt;

// Elements are reduced by blocks whose accumulators stay in the first-level
// cache: every operand is read once, every destination written once.
static constexpr int64_t blockSize = 1024;

template <typename T>
TPRT_INLINE T combine(Reduction reduction, T a, T b) {
  switch (reduction) {
  case Reduction::Max:
    return (a > b || a != a) ? a : b;
  case Reduction::Min:
    return (a < b || a != a) ? a : b;
  case Reduction::Product:
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) *
                            static_cast<uint64_t>(b));
    else
      return a * b;
  case Reduction::Sum:
  case Reduction::Avg:
    break;
  }
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

/// acc[i] = left[i] ∘ operand[i]. The reduction is a compile-time constant, so
/// that the loop vectorizes.
template <Reduction reduction, typename Left, typename T, typename Acc>
TPRT_INLINE void accumulate(Acc *acc, const Left *left, const T *operand,
                            int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    acc[i] = combine(reduction, castElement<Acc>(left[i]),
                     castElement<Acc>(operand[i]));
}

template <typename Left, typename T, typename Acc>
TPRT_INLINE void accumulate(Reduction reduction, Acc *acc, const Left *left,
                            const T *operand, int64_t count) {
  switch (reduction) {
  case Reduction::Sum:
  case Reduction::Avg:
    return accumulate<Reduction::Sum>(acc, left, operand, count);
  case Reduction::Max:
    return accumulate<Reduction::Max>(acc, left, operand, count);
  case Reduction::Min:
    return accumulate<Reduction::Min>(acc, left, operand, count);
  case Reduction::Product:
    return accumulate<Reduction::Product>(acc, left, operand, count);
  }
}

template <typename T, typename Acc>
TPRT_INLINE void reduceBlocks(Reduction reduction, const std::byte *const *srcs,
                              int64_t numOperands, std::byte *const *dsts,
                              int64_t numResults, int64_t count) {
  alignas(64) Acc acc[blockSize];
  for (int64_t start = 0; start < count; start += blockSize) {
    int64_t size = std::min(blockSize, count - start);
    const T *first = reinterpret_cast<const T *>(srcs[0]) + start;
    if (numOperands == 1)
      for (int64_t i = 0; i < size; ++i)
        acc[i] = castElement<Acc>(first[i]);
    for (int64_t j = 1; j < numOperands; ++j) {
      const T *operand = reinterpret_cast<const T *>(srcs[j]) + start;
      if (j == 1)
        accumulate(reduction, acc, first, operand, size);
      else
        accumulate(reduction, acc, acc, operand, size);
    }
    if (reduction == Reduction::Avg)
      for (int64_t i = 0; i < size; ++i)
        acc[i] /= static_cast<Acc>(numOperands);
    for (int64_t j = 0; j < numResults; ++j) {
      T *result = reinterpret_cast<T *>(dsts[j]) + start;
      for (int64_t i = 0; i < size; ++i)
        result[i] = castElement<T>(acc[i]);
    }
  }
}

// Function multiversioning doesn't take templates: one function per type.
#define TPRT_REDUCE(NAME, T, ACC)                                              \
  TPRT_MULTIVERSION static void NAME(                                          \
      Reduction reduction, const std::byte *const *srcs, int64_t numOperands,  \
      std::byte *const *dsts, int64_t numResults, int64_t count) {             \
    reduceBlocks<T, ACC>(reduction, srcs, numOperands, dsts, numResults,       \
                         count);                                               \
  }
TPRT_REDUCE(reduceF32, float, float)
TPRT_REDUCE(reduceF64, double, double)
TPRT_REDUCE(reduceF16, Half, float)
TPRT_REDUCE(reduceBF16, BFloat16, float)
TPRT_REDUCE(reduceI64, int64_t, int64_t)
TPRT_REDUCE(reduceI32, int32_t, int32_t)
TPRT_REDUCE(reduceI1, uint8_t, uint8_t)
// An average needs the sum's upper bits.
TPRT_REDUCE(reduceI16, int16_t, int32_t)
TPRT_REDUCE(reduceI8, int8_t, int32_t)
TPRT_REDUCE(reduceUI8, uint8_t, int32_t)
#undef TPRT_REDUCE

void tprt::reduce(Reduction reduction, Dtype dtype,
                  const std::vector<const std::byte *> &operands,
                  const std::vector<std::byte *> &dsts, int64_t count) {
  auto *kernel = [&] {
    switch (dtype) {
    case Dtype::F32:
      return reduceF32;
    case Dtype::F64:
      return reduceF64;
    case Dtype::F16:
      return reduceF16;
    case Dtype::BF16:
      return reduceBF16;
    case Dtype::I64:
      return reduceI64;
    case Dtype::I32:
      return reduceI32;
    case Dtype::I16:
      return reduceI16;
    case Dtype::I8:
      return reduceI8;
    case Dtype::I1:
      return reduceI1;
    case Dtype::UI8:
      return reduceUI8;
    }
    return reduceF32;
  }();
  kernel(reduction, operands.data(), operands.size(), dsts.data(), dsts.size(),
         count);
}
