//===- ShardedTensors.cpp - The ranks' blocks of tensors ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exec/ShardedTensors.h"

#include <algorithm>
#include <sys/mman.h>

using namespace tprt;

static bool isNeutral(const TensorInfo &info, int64_t rank) {
  return std::binary_search(info.neutralRanks.begin(), info.neutralRanks.end(),
                            rank);
}

ShardedTensors::ShardedTensors(const std::vector<TensorInfo> &infos,
                               int64_t worldSize, std::vector<int64_t> ranks,
                               std::shared_ptr<Device> device)
    : infos(&infos), ranks(std::move(ranks)), device(std::move(device)),
      pointers(worldSize, std::vector<void *>(infos.size(), nullptr)),
      memory(infos.size(),
             std::vector<std::shared_ptr<const std::byte>>(worldSize)) {}

/// Addresses that nothing else has, but no memory.
static std::shared_ptr<const std::byte> reserveAddresses(int64_t bytes) {
  size_t size = std::max<int64_t>(bytes, 1);
  void *begin = ::mmap(nullptr, size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED)
    throw executionError("cannot reserve " + std::to_string(bytes) +
                         " bytes of addresses");
  return {static_cast<const std::byte *>(begin), [size](const std::byte *from) {
            ::munmap(const_cast<std::byte *>(from), size);
          }};
}

void ShardedTensors::hold(size_t index, int64_t rank,
                          std::shared_ptr<const std::byte> data) {
  uncopied.erase(pointers[rank][index]);
  pointers[rank][index] = const_cast<std::byte *>(data.get());
  memory[index][rank] = std::move(data);
}

/// Memory that doesn't belong to a file, and that only this rank and those that
/// share the shard use.
std::byte *ShardedTensors::getOwnBlock(size_t index, int64_t rank) {
  if (!pointers[rank][index])
    hold(index, rank, device->allocate((*infos)[index].getShardBytes(rank)));
  return static_cast<std::byte *>(pointers[rank][index]);
}

/// The first rank of this process that shares the elements of `rank`.
int64_t ShardedTensors::getFirstSharer(const TensorInfo &info,
                                       int64_t rank) const {
  if (info.isUpdated || isNeutral(info, rank))
    return rank;
  return *std::find_if(ranks.begin(), ranks.end(), [&](int64_t other) {
    return other == rank ||
           (!isNeutral(info, other) && info.shards[other] == info.shards[rank]);
  });
}

void ShardedTensors::set(size_t index, const Tensor &tensor) {
  const TensorInfo &info = (*infos)[index];
  // Converted once, because shards that are used in place lie in one global
  // tensor.
  Tensor adapted =
      device->sharesHostMemory() && !info.isUpdated && !info.isRightOperand
          ? convertFloats(tensor, info.dtype)
          : tensor;
  setBlocks(index, [&](int64_t rank) {
    if (!isNeutral(info, rank))
      return place(index, rank, {adapted, info.shards[rank]});
    device->fill(info.dtype, info.neutralElement, getOwnBlock(index, rank),
                 numElements(info.shards[rank].getShape()));
    copiedBytes += info.getShardBytes(rank);
  });
}

void ShardedTensors::setBlock(size_t index, int64_t rank, const Tensor &block) {
  const TensorInfo &info = (*infos)[index];
  bool isConverted =
      device->sharesHostMemory() && !info.isUpdated && !info.isRightOperand;
  place(index, rank,
        {isConverted ? convertFloats(block, info.dtype) : block,
         makeBox(Shape(block.shape.size()), block.shape)});
}

void ShardedTensors::fill(size_t index, double value) {
  const TensorInfo &info = (*infos)[index];
  setBlocks(index, [&](int64_t rank) {
    device->fill(
        info.dtype, isNeutral(info, rank) ? info.neutralElement : value,
        getOwnBlock(index, rank), numElements(info.shards[rank].getShape()));
  });
}

/// Calls setBlock(rank) for the first of the ranks that share a shard, and lets
/// the others share its memory.
template <typename SetBlock>
void ShardedTensors::setBlocks(size_t index, SetBlock setBlock) {
  for (int64_t rank : ranks) {
    int64_t first = getFirstSharer((*infos)[index], rank);
    if (first == rank)
      setBlock(rank);
    else
      hold(index, rank, memory[index][first]);
  }
}

/// Sets a rank's shard: in place if possible, else as a copy.
void ShardedTensors::place(size_t index, int64_t rank, const Part &part) {
  const TensorInfo &info = (*infos)[index];
  const auto &[tensor, block] = part;
  if (device->sharesHostMemory() && !info.isUpdated) {
    std::optional<int64_t> offset = contiguousOffset(tensor.shape, block);
    if (offset && tensor.dtype == info.dtype) {
      const std::byte *data =
          tensor.data.get() + *offset * byteWidth(tensor.dtype);
      if (reinterpret_cast<uintptr_t>(data) % blockAlignment == 0)
        return hold(index, rank, {tensor.data, data});
    }
    if (info.isRightOperand) {
      hold(index, rank, reserveAddresses(info.getShardBytes(rank)));
      uncopied[pointers[rank][index]] = part;
      return;
    }
    // The rank's old memory may belong to a file or be in use elsewhere.
    hold(index, rank, device->allocate(info.getShardBytes(rank)));
  }
  device->write(tensor, block, info.dtype, getOwnBlock(index, rank));
  copiedBytes += info.getShardBytes(rank);
}

std::function<std::shared_ptr<const std::byte>()>
ShardedTensors::getReader(size_t index, int64_t rank) const {
  auto found = uncopied.find(pointers[rank][index]);
  if (found == uncopied.end())
    return nullptr;
  return [dtype = (*infos)[index].dtype, part = found->second] {
    const auto &[tensor, block] = part;
    Tensor shard{tensor.dtype, block.getShape(), nullptr};
    std::shared_ptr<std::byte> data = allocateAligned(shard.getNumBytes());
    readBlock(tensor.shape, block, byteWidth(tensor.dtype), tensor.data.get(),
              data.get());
    shard.data = data;
    return convertFloats(std::move(shard), dtype).data;
  };
}

/// The elements of a rank's shard.
std::shared_ptr<const std::byte>
ShardedTensors::getContents(size_t index, int64_t rank) const {
  auto read = getReader(index, rank);
  return read ? read() : memory[index][rank];
}

std::vector<int64_t> tprt::chooseSources(const TensorInfo &info,
                                         const std::vector<int64_t> &ranks) {
  std::vector<Block> blocks;
  std::vector<int64_t> sources;
  for (int64_t rank : ranks)
    if (!isNeutral(info, rank) &&
        std::find(blocks.begin(), blocks.end(), info.shards[rank]) ==
            blocks.end()) {
      blocks.push_back(info.shards[rank]);
      sources.push_back(rank);
    }
  return sources;
}

std::optional<Tensor> ShardedTensors::gather(size_t index) const {
  const TensorInfo &info = (*infos)[index];
  std::vector<Block> blocks;
  std::vector<int64_t> sources = chooseSources(info, ranks);
  for (int64_t rank : sources)
    blocks.push_back(info.shards[rank]);
  if (countCovered(blocks) != numElements(info.shape))
    return std::nullopt;
  Tensor whole{info.dtype, info.shape, nullptr};
  std::shared_ptr<std::byte> data = allocateAligned(whole.getNumBytes());
  for (int64_t rank : sources)
    device->read(getContents(index, rank).get(), info.dtype, info.shape,
                 info.shards[rank], data.get());
  whole.data = data;
  return whole;
}

Tensor ShardedTensors::getBlock(size_t index, int64_t rank) const {
  const TensorInfo &info = (*infos)[index];
  Shape shape = info.shards[rank].getShape();
  std::shared_ptr<std::byte> data = allocateAligned(info.getShardBytes(rank));
  device->read(getContents(index, rank).get(), info.dtype, shape,
               makeBox(Shape(shape.size()), shape), data.get());
  return {info.dtype, shape, data};
}
