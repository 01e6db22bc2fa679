//===- Dtype.cpp - Element types and their conversions --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Dtype.h"

#include <cmath>

#include "support/Multiversion.h"

#include <cstring>

using namespace tprt;

static constexpr std::string_view names[numDtypes] = {
    "f32", "f64", "f16", "bf16", "i64", "i32", "i1", "i8", "i16", "ui8"};

std::string_view tprt::toString(Dtype dtype) {
  return names[static_cast<int32_t>(dtype)];
}

std::optional<Dtype> tprt::parseDtype(std::string_view name) {
  for (int32_t i = 0; i < numDtypes; ++i)
    if (names[i] == name)
      return static_cast<Dtype>(i);
  return std::nullopt;
}

template <typename From, typename To>
TPRT_INLINE void convert(const From *src, To *dst, size_t count) {
  for (size_t i = 0; i < count; ++i)
    dst[i] = castElement<To>(src[i]);
}

TPRT_MULTIVERSION static void halfToF32(const Half *src, float *dst,
                                        size_t count) {
  convert(src, dst, count);
}
TPRT_MULTIVERSION static void bfloatToF32(const BFloat16 *src, float *dst,
                                          size_t count) {
  convert(src, dst, count);
}
TPRT_MULTIVERSION static void f32ToHalf(const float *src, Half *dst,
                                        size_t count) {
  convert(src, dst, count);
}
TPRT_MULTIVERSION static void f32ToBFloat(const float *src, BFloat16 *dst,
                                          size_t count) {
  convert(src, dst, count);
}

bool tprt::holds(Dtype dtype, double number) {
  if (isFloat(dtype))
    return true;
  if (dtype == Dtype::I1)
    return number == 0 || number == 1;
  double highest = dtype == Dtype::UI8 ? 255
                   : dtype == Dtype::I64
                       ? 0x1p53
                       : std::exp2(8 * byteWidth(dtype) - 1) - 1;
  double lowest = dtype == Dtype::UI8   ? 0
                  : dtype == Dtype::I64 ? -highest
                                        : -highest - 1;
  return std::trunc(number) == number && lowest <= number && number <= highest;
}

void tprt::convertToF32(Dtype dtype, const void *src, float *dst,
                        size_t count) {
  if (dtype == Dtype::F16)
    halfToF32(static_cast<const Half *>(src), dst, count);
  else
    bfloatToF32(static_cast<const BFloat16 *>(src), dst, count);
}

void tprt::convertFromF32(Dtype dtype, const float *src, void *dst,
                          size_t count) {
  if (dtype == Dtype::F16)
    f32ToHalf(src, static_cast<Half *>(dst), count);
  else
    f32ToBFloat(src, static_cast<BFloat16 *>(dst), count);
}

template <typename T>
static double loadElement(const void *data, size_t index) {
  T value; // elements in a mapped file may be unaligned
  std::memcpy(&value, static_cast<const std::byte *>(data) + index * sizeof(T),
              sizeof(T));
  return castElement<double>(value);
}

double tprt::loadAsDouble(Dtype dtype, const void *data, size_t index) {
  switch (dtype) {
  case Dtype::F32:
    return loadElement<float>(data, index);
  case Dtype::F64:
    return loadElement<double>(data, index);
  case Dtype::F16:
    return loadElement<Half>(data, index);
  case Dtype::BF16:
    return loadElement<BFloat16>(data, index);
  case Dtype::I64:
    return loadElement<int64_t>(data, index);
  case Dtype::I32:
    return loadElement<int32_t>(data, index);
  case Dtype::I16:
    return loadElement<int16_t>(data, index);
  case Dtype::I8:
    return loadElement<int8_t>(data, index);
  case Dtype::I1:
  case Dtype::UI8:
    return loadElement<uint8_t>(data, index);
  }
  return 0;
}
