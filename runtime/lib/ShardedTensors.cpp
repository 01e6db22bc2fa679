//===- ShardedTensors.cpp - The ranks' blocks of tensors -----------------===//

#include "ShardedTensors.h"

#include "tprt/Npy.h"

#include <algorithm>

using namespace tprt;

/// Writes `value` to `count` elements at `data`.
static void fillElements(Dtype dtype, double value, std::byte *data,
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
  case Dtype::I1:
    return fill(static_cast<uint8_t>(value));
  }
}

static bool isNeutral(const TensorInfo &info, int64_t rank) {
  return std::binary_search(info.neutralRanks.begin(), info.neutralRanks.end(),
                            rank);
}

ShardedTensors::ShardedTensors(const std::vector<TensorInfo> &infos,
                               int64_t worldSize)
    : infos(&infos),
      pointers(worldSize, std::vector<void *>(infos.size(), nullptr)),
      memory(infos.size(),
             std::vector<std::shared_ptr<const std::byte>>(worldSize)) {}

void ShardedTensors::hold(size_t index, int64_t rank,
                          std::shared_ptr<const std::byte> data) {
  pointers[rank][index] = const_cast<std::byte *>(data.get());
  memory[index][rank] = std::move(data);
}

/// Memory that no other rank sees, and that isn't a file's.
std::byte *ShardedTensors::getOwnBlock(size_t index, int64_t rank) {
  if (!pointers[rank][index])
    hold(index, rank, allocateAligned((*infos)[index].getShardBytes(rank)));
  return static_cast<std::byte *>(pointers[rank][index]);
}

void ShardedTensors::set(size_t index, const Tensor &tensor) {
  const TensorInfo &info = (*infos)[index];
  Tensor adapted = adaptToDtype(tensor, info.dtype);
  if (info.isUpdated)
    setPrivate(index, adapted);
  else
    setShared(index, adapted);
}

void ShardedTensors::setPrivate(size_t index, const Tensor &tensor) {
  const TensorInfo &info = (*infos)[index];
  for (size_t rank = 0; rank < pointers.size(); ++rank) {
    readBlock(tensor.shape, info.shards[rank], byteWidth(tensor.dtype),
              tensor.data.get(), getOwnBlock(index, rank));
    copiedBytes += info.getShardBytes(rank);
  }
}

void ShardedTensors::setShared(size_t index, const Tensor &tensor) {
  const TensorInfo &info = (*infos)[index];
  for (size_t rank = 0; rank < pointers.size(); ++rank) {
    const Block &block = info.shards[rank];
    if (isNeutral(info, rank)) {
      int64_t bytes = info.getShardBytes(rank);
      std::shared_ptr<std::byte> neutral = allocateAligned(bytes);
      fillElements(info.dtype, info.neutralElement, neutral.get(),
                   bytes / byteWidth(info.dtype));
      copiedBytes += bytes;
      hold(index, rank, neutral);
      continue;
    }
    size_t same = 0; // an earlier rank with this block
    while (same < rank &&
           (isNeutral(info, same) || !(info.shards[same] == block)))
      ++same;
    hold(index, rank, same < rank ? memory[index][same] : place(tensor, block));
  }
}

/// The block's elements: in place where that is dense and aligned, else a copy.
std::shared_ptr<const std::byte> ShardedTensors::place(const Tensor &tensor,
                                                       const Block &block) {
  int64_t width = byteWidth(tensor.dtype);
  if (std::optional<int64_t> offset = contiguousOffset(tensor.shape, block)) {
    const std::byte *data = tensor.data.get() + *offset * width;
    if (reinterpret_cast<uintptr_t>(data) % blockAlignment == 0)
      return {tensor.data, data};
  }
  int64_t bytes = numElements(block.getShape()) * width;
  std::shared_ptr<std::byte> copy = allocateAligned(bytes);
  readBlock(tensor.shape, block, width, tensor.data.get(), copy.get());
  copiedBytes += bytes;
  return copy;
}

void ShardedTensors::fill(size_t index, double value) {
  const TensorInfo &info = (*infos)[index];
  if (!info.isUpdated) { // the ranks share one whole tensor
    Tensor whole{info.dtype, info.shape, nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(whole.getNumBytes());
    fillElements(info.dtype, value, data.get(), whole.getNumElements());
    whole.data = data;
    return setShared(index, whole);
  }
  for (size_t rank = 0; rank < pointers.size(); ++rank)
    fillElements(info.dtype, value, getOwnBlock(index, rank),
                 numElements(info.shards[rank].getShape()));
}

std::optional<Tensor>
ShardedTensors::gather(size_t index, std::span<const int64_t> ranks) const {
  const TensorInfo &info = (*infos)[index];
  // Replicas hold the same bits: one of each is enough.
  std::vector<Block> blocks;
  std::vector<int64_t> sources;
  for (int64_t rank : ranks)
    if (!isNeutral(info, rank) &&
        std::find(blocks.begin(), blocks.end(), info.shards[rank]) ==
            blocks.end()) {
      blocks.push_back(info.shards[rank]);
      sources.push_back(rank);
    }
  if (countCovered(blocks) != numElements(info.shape))
    return std::nullopt;
  Tensor whole{info.dtype, info.shape, nullptr};
  std::shared_ptr<std::byte> data = allocateAligned(whole.getNumBytes());
  for (int64_t rank : sources)
    writeBlock(info.shape, info.shards[rank], byteWidth(info.dtype),
               memory[index][rank].get(), data.get());
  whole.data = data;
  return whole;
}
