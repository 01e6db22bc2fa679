//===- Tensor.cpp - A dense tensor in host memory ------------------------===//

#include "tprt/Tensor.h"

#include "Box.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

using namespace tprt;

std::optional<int64_t> tprt::checkedNumElements(const Shape &shape) {
  int64_t count = 1;
  bool isEmpty = false, overflows = false;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    isEmpty |= size == 0;
    overflows |= __builtin_mul_overflow(count, size, &count);
  }
  if (isEmpty)
    return 0;
  if (overflows || count > std::numeric_limits<int64_t>::max() / 8)
    return std::nullopt;
  return count;
}

int64_t tprt::numElements(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::string tprt::typeString(Dtype dtype, const Shape &shape) {
  std::string text;
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + std::string(toString(dtype));
}

std::shared_ptr<std::byte> tprt::allocateAligned(int64_t bytes) {
  // aligned_alloc wants a multiple of the alignment; an empty block still gets
  // an address of its own.
  size_t size = (std::max<size_t>(bytes, 1) + blockAlignment - 1) /
                blockAlignment * blockAlignment;
  void *memory = std::aligned_alloc(blockAlignment, size);
  if (!memory)
    throw executionError("cannot allocate " + std::to_string(bytes) + " bytes");
  return {static_cast<std::byte *>(memory), std::free};
}

std::optional<int64_t> tprt::contiguousOffset(const Shape &shape,
                                              const Block &block) {
  int64_t offset = 0, stride = 1;
  bool covered = true; // all dimensions to the right are whole
  for (size_t d = shape.size(); d-- > 0;) {
    if (!covered && block.size[d] != 1)
      return std::nullopt;
    covered &= block.size[d] == shape[d];
    offset += block.offset[d] * stride;
    stride *= shape[d];
  }
  return offset;
}

void tprt::readBlock(const Shape &shape, const Block &block,
                     int64_t elementBytes, const std::byte *src,
                     std::byte *dst) {
  copyBox(block.size, elementBytes, {shape, block.offset}, src,
          {block.size, Shape(shape.size(), 0)}, dst);
}

void tprt::writeBlock(const Shape &shape, const Block &block,
                      int64_t elementBytes, const std::byte *src,
                      std::byte *dst) {
  copyBox(block.size, elementBytes, {block.size, Shape(shape.size(), 0)}, src,
          {shape, block.offset}, dst);
}
