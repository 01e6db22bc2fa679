//===- Tensor.cpp - A dense tensor in host memory -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Tensor.h"

#include "support/StridedCopy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <tuple>

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
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return 0; // even if the product of the others overflows
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

template <typename To>
static void castFromDouble(const Tensor &tensor, std::byte *dst) {
  for (int64_t i = 0, n = tensor.getNumElements(); i < n; ++i)
    reinterpret_cast<To *>(dst)[i] =
        castElement<To>(loadAsDouble(tensor.dtype, tensor.data.get(), i));
}

Tensor tprt::convertFloats(Tensor tensor, Dtype dtype) {
  if (dtype == tensor.dtype)
    return tensor;
  Tensor result{dtype, tensor.shape, nullptr};
  std::shared_ptr<std::byte> data = allocateAligned(result.getNumBytes());
  result.data = data;
  auto isHalf = [](Dtype type) { return byteWidth(type) == 2; };
  if ((isHalf(tensor.dtype) && dtype == Dtype::F32) ||
      (tensor.dtype == Dtype::F32 && isHalf(dtype))) {
    // These are vectorized, but want aligned elements, which a mapped file
    // doesn't guarantee beyond its own header's.
    int64_t count = tensor.getNumElements();
    std::shared_ptr<std::byte> aligned = allocateAligned(tensor.getNumBytes());
    std::memcpy(aligned.get(), tensor.data.get(), tensor.getNumBytes());
    if (dtype == Dtype::F32)
      convertToF32(tensor.dtype, aligned.get(),
                   reinterpret_cast<float *>(data.get()), count);
    else
      convertFromF32(dtype, reinterpret_cast<const float *>(aligned.get()),
                     data.get(), count);
  } else if (dtype == Dtype::F64) {
    castFromDouble<double>(tensor, data.get());
  } else if (dtype == Dtype::F32) {
    castFromDouble<float>(tensor, data.get());
  } else if (dtype == Dtype::F16) {
    castFromDouble<Half>(tensor, data.get());
  } else {
    castFromDouble<BFloat16>(tensor, data.get());
  }
  return result;
}

Shape Block::getShape() const {
  Shape shape;
  for (const std::vector<Piece> &pieces : dims) {
    int64_t size = 0;
    for (const Piece &piece : pieces)
      size += piece.size;
    shape.push_back(size);
  }
  return shape;
}

Block tprt::makeBox(const Shape &offset, const Shape &size) {
  Block block;
  for (size_t d = 0; d < size.size(); ++d) {
    block.dims.emplace_back();
    if (size[d] > 0)
      block.dims.back().push_back({offset[d], size[d]});
  }
  return block;
}

namespace {
/// Counts the elements of blocks. No block may occur twice.
class Coverage {
public:
  /// Disjoint blocks take about as many steps as they have pieces.
  explicit Coverage(size_t numPieces) : maxSteps((1 << 16) + 64 * numPieces) {}

  /// Dimension `dim` is cut wherever a piece begins or ends: between two cuts,
  /// each block has either all indices or none.
  int64_t count(const std::vector<const Block *> &blocks, size_t dim) {
    if (blocks.empty())
      return 0;
    if (dim == blocks.front()->dims.size())
      return 1;
    std::map<int64_t, Cut> cuts;
    for (const Block *block : blocks)
      for (const Piece &piece : block->dims[dim])
        if (piece.size > 0) {
          countSteps(1);
          cuts[piece.offset].begins.push_back(block);
          cuts[piece.offset + piece.size].ends.push_back(block);
        }
    int64_t sum = 0;
    std::set<const Block *> within;
    for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
      for (const Block *block : cut->second.ends)
        within.erase(block);
      within.insert(cut->second.begins.begin(), cut->second.begins.end());
      if (within.empty())
        continue;
      countSteps(within.size());
      sum += (std::next(cut)->first - cut->first) *
             count({within.begin(), within.end()}, dim + 1);
    }
    return sum;
  }

private:
  struct Cut {
    std::vector<const Block *> begins, ends;
  };
  void countSteps(size_t count) {
    if ((numSteps += count) > maxSteps)
      throw inputError("the blocks overlap in more ways than can be checked");
  }

  const size_t maxSteps;
  size_t numSteps = 0;
};
} // namespace

int64_t tprt::countCovered(const std::vector<Block> &blocks) {
  // Replicas count once.
  auto isLess = [](const Block *a, const Block *b) {
    return std::lexicographical_compare(
        a->dims.begin(), a->dims.end(), b->dims.begin(), b->dims.end(),
        [](const auto &of, const auto &other) {
          return std::lexicographical_compare(
              of.begin(), of.end(), other.begin(), other.end(),
              [](const Piece &p, const Piece &q) {
                return std::tie(p.offset, p.size) < std::tie(q.offset, q.size);
              });
        });
  };
  std::set<const Block *, decltype(isLess)> distinct(isLess);
  for (const Block &block : blocks)
    distinct.insert(&block);
  size_t numPieces = 0;
  for (const Block *block : distinct)
    for (const std::vector<Piece> &pieces : block->dims)
      numPieces += pieces.size();
  return Coverage(numPieces).count({distinct.begin(), distinct.end()}, 0);
}

std::optional<int64_t> tprt::contiguousOffset(const Shape &shape,
                                              const Block &block) {
  Shape size = block.getShape();
  if (numElements(size) == 0)
    return 0;
  int64_t offset = 0, stride = 1;
  bool covered = true; // the block covers all dimensions to the right
  for (size_t d = shape.size(); d-- > 0;) {
    if (block.dims[d].size() != 1 || (!covered && size[d] != 1))
      return std::nullopt;
    covered &= size[d] == shape[d];
    offset += block.dims[d].front().offset * stride;
    stride *= shape[d];
  }
  return offset;
}

/// Calls visit(offset in the tensor, offset in the block, size) for each box of
/// `block`: one piece of every dimension.
template <typename Visit>
static void forEachBox(const Block &block, Visit visit) {
  size_t rank = block.dims.size();
  Shape global(rank), local(rank), size(rank);
  auto choose = [&](auto &choose, size_t d) -> void {
    if (d == rank)
      return visit(global, local, size);
    local[d] = 0;
    for (const Piece &piece : block.dims[d]) {
      global[d] = piece.offset;
      size[d] = piece.size;
      choose(choose, d + 1);
      local[d] += piece.size;
    }
  };
  choose(choose, 0);
}

void tprt::readBlock(const Shape &shape, const Block &block,
                     int64_t elementBytes, const std::byte *src,
                     std::byte *dst) {
  Shape local = block.getShape();
  forEachBox(block, [&](const Shape &from, const Shape &to, const Shape &size) {
    StridedCopy(size, {shape, from}, {local, to}).copy(elementBytes, src, dst);
  });
}

void tprt::writeBlock(const Shape &shape, const Block &block,
                      int64_t elementBytes, const std::byte *src,
                      std::byte *dst) {
  Shape local = block.getShape();
  forEachBox(block, [&](const Shape &to, const Shape &from, const Shape &size) {
    StridedCopy(size, {local, from}, {shape, to}).copy(elementBytes, src, dst);
  });
}
