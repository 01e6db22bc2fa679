//===- Device.cpp - Devices of ranks --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "device/Device.h"

#include <algorithm>

using namespace tprt;

void tprt::fillElements(Dtype dtype, double value, std::byte *data,
                        int64_t count) {
  auto fill = [&](auto element) {
    std::fill_n(reinterpret_cast<decltype(element) *>(data), count, element);
  };
  switch (dtype) {
  case Dtype::F32:
    return fill(static_cast<float>(value));
  case Dtype::F64:
    return fill(value);
  case Dtype::F16:
    return fill(static_cast<Half>(value));
  case Dtype::BF16:
    return fill(BFloat16::round(static_cast<float>(value)));
  case Dtype::I64:
    return fill(static_cast<int64_t>(value));
  case Dtype::I32:
    return fill(static_cast<int32_t>(value));
  case Dtype::I16:
    return fill(static_cast<int16_t>(value));
  case Dtype::I8:
    return fill(static_cast<int8_t>(value));
  case Dtype::I1:
  case Dtype::UI8:
    return fill(static_cast<uint8_t>(value));
  }
}

void HostDevice::write(const Tensor &tensor, const Block &block, Dtype dtype,
                       std::byte *dst) {
  Tensor adapted = convertFloats(tensor, dtype);
  readBlock(adapted.shape, block, byteWidth(dtype), adapted.data.get(), dst);
}

void HostDevice::fill(Dtype dtype, double value, std::byte *dst,
                      int64_t count) {
  fillElements(dtype, value, dst, count);
}
