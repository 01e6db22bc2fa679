//===- Dtype.h - Element types and their conversions ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_DTYPE_H
#define TPRT_DTYPE_H

#include "tprt/Error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace tprt {

/// Element types, numbered as in the C ABI.
enum class Dtype : int32_t {
  F32 = TPRT_F32,
  F64 = TPRT_F64,
  F16 = TPRT_F16,
  BF16 = TPRT_BF16,
  I64 = TPRT_I64,
  I32 = TPRT_I32,
  I1 = TPRT_I1,
  I8 = TPRT_I8,
  I16 = TPRT_I16,
  UI8 = TPRT_UI8
};
inline constexpr int32_t numDtypes = 10;

/// Size of one element in bytes.
constexpr int64_t byteWidth(Dtype dtype) {
  switch (dtype) {
  case Dtype::F64:
  case Dtype::I64:
    return 8;
  case Dtype::F32:
  case Dtype::I32:
    return 4;
  case Dtype::F16:
  case Dtype::BF16:
  case Dtype::I16:
    return 2;
  case Dtype::I1:
  case Dtype::I8:
  case Dtype::UI8:
    return 1;
  }
  return 0;
}

constexpr bool isFloat(Dtype dtype) {
  return dtype == Dtype::F32 || dtype == Dtype::F64 || dtype == Dtype::F16 ||
         dtype == Dtype::BF16;
}

/// The name in manifests and diagnostics: "f32", "i1", …
TPRT_API std::string_view toString(Dtype dtype);
TPRT_API std::optional<Dtype> parseDtype(std::string_view name);

/// Whether an element can be `number`. Floats are rounded; an i64 is at most
/// 2^53 in size, up to which doubles are exact.
TPRT_API bool holds(Dtype dtype, double number);

/// The type of an f16 element: IEEE binary16, with the compiler's conversions.
using Half = _Float16;

/// A bf16 element: the upper half of an f32.
struct BFloat16 {
  uint16_t bits;

  /// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
  __attribute__((always_inline)) static BFloat16 round(float value) {
    uint32_t word = __builtin_bit_cast(uint32_t, value);
    uint32_t rounded = word + 0x7fff + ((word >> 16) & 1);
    bool isNaN = (word & 0x7fffffff) > 0x7f800000;
    return {static_cast<uint16_t>((isNaN ? word | 0x400000 : rounded) >> 16)};
  }
  __attribute__((always_inline)) float widen() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
};

/// static_cast between element types, BFloat16 included. Always inlined, so
/// that loops over it vectorize for any instruction set that they are compiled
/// for.
template <typename To, typename From>
__attribute__((always_inline)) inline To castElement(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<From, BFloat16>)
    return static_cast<To>(value.widen());
  else if constexpr (std::is_same_v<To, BFloat16>)
    return BFloat16::round(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

/// Converts `count` elements of f16 or bf16 at `src` to f32.
TPRT_API void convertToF32(Dtype dtype, const void *src, float *dst,
                           size_t count);
/// Rounds `count` f32 elements to f16 or bf16 (nearest, ties to even).
TPRT_API void convertFromF32(Dtype dtype, const float *src, void *dst,
                             size_t count);

/// Element `index` at `data` as a double (i64 beyond 2^53 rounds).
TPRT_API double loadAsDouble(Dtype dtype, const void *data, size_t index);

} // namespace tprt

#endif // TPRT_DTYPE_H
