//===- Random.cpp - Tensors that no file gives ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Random.h"

#include <cmath>
#include <cstring>

using namespace tprt;

/// The output of SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014) at state `x`.
static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// Fills `data` with numbers in [low, high).
static void drawElements(Dtype dtype, uint64_t key, float low, float high,
                         std::byte *data, int64_t count) {
  constexpr int64_t chunk = 4096;
  float numbers[chunk];
  for (int64_t begin = 0; begin < count; begin += chunk) {
    int64_t size = std::min(chunk, count - begin);
    for (int64_t i = 0; i < size; ++i)
      numbers[i] =
          low + (high - low) * std::ldexp(mix(key + begin + i) >> 40, -24);
    std::byte *at = data + begin * byteWidth(dtype);
    if (dtype == Dtype::F32)
      std::memcpy(at, numbers, size * sizeof(float));
    else if (dtype == Dtype::F64)
      std::copy_n(numbers, size, reinterpret_cast<double *>(at));
    else
      convertFromF32(dtype, numbers, at, size);
  }
}

void drawTensors(const std::vector<TensorInfo> &wanted, uint64_t seed,
                 bool isParameter, TensorMap &tensors) {
  for (const TensorInfo &info : wanted) {
    if (info.init || tensors.contains(info.name))
      continue;
    if (!isFloat(info.dtype))
      throw inputError("--random: '" + info.name + "' is of type " +
                       info.getTypeString() +
                       ", whose range isn't known: give it in a file");
    uint64_t key = mix(seed);
    for (char c : info.name)
      key = mix(key ^ static_cast<unsigned char>(c));
    float low = -1, high = 1;
    if (isParameter && info.shape.size() < 2) {
      low = 0.5;
      high = 1.5;
    } else if (isParameter) {
      high = std::sqrt(3.0f / std::max<int64_t>(info.shape.back(), 1));
      low = -high;
    }
    Tensor tensor{info.dtype, info.shape, nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(tensor.getNumBytes());
    drawElements(info.dtype, key, low, high, data.get(),
                 tensor.getNumElements());
    tensor.data = data;
    tensors[info.name] = tensor;
  }
}
