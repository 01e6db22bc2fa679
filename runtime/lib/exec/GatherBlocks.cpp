//===- GatherBlocks.cpp - Global values from blocks of processes ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exec/GatherBlocks.h"

#include "exec/ShardedTensors.h"

#include <algorithm>
#include <numeric>

using namespace tprt;

/// The ranks of a job whose shards are needed for the global value.
static std::vector<int64_t> getOwners(const TensorInfo &info) {
  std::vector<int64_t> ranks(info.shards.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return chooseSources(info, ranks);
}

bool tprt::contributes(const TensorInfo &info, int64_t rank) {
  std::vector<int64_t> owners = getOwners(info);
  return std::find(owners.begin(), owners.end(), rank) != owners.end();
}

size_t tprt::getLargestBlock(const TensorInfo &info) {
  int64_t bytes = 0;
  for (size_t rank = 0; rank < info.shards.size(); ++rank)
    bytes = std::max(bytes, info.getShardBytes(rank));
  return bytes;
}

Tensor tprt::unpackBlocks(const TensorInfo &info,
                          const std::vector<std::string> &blocks) {
  Tensor whole{info.dtype, info.shape, nullptr};
  std::shared_ptr<std::byte> data = allocateAligned(whole.getNumBytes());
  for (int64_t rank : getOwners(info)) {
    if (static_cast<int64_t>(blocks[rank].size()) != info.getShardBytes(rank))
      throw executionError("rank " + std::to_string(rank) + " has " +
                           std::to_string(blocks[rank].size()) + " bytes of '" +
                           info.name + "' where its block has " +
                           std::to_string(info.getShardBytes(rank)) +
                           ": it runs another program");
    writeBlock(info.shape, info.shards[rank], byteWidth(info.dtype),
               reinterpret_cast<const std::byte *>(blocks[rank].data()),
               data.get());
  }
  whole.data = data;
  return whole;
}

/// Whether every rank holds all elements.
static bool isReplicated(const TensorInfo &info) {
  return info.neutralRanks.empty() &&
         std::all_of(info.shards.begin(), info.shards.end(),
                     [&](const Block &block) {
                       return block.getShape() == info.shape;
                     });
}

Tensor tprt::gatherBlocks(Communicator &communicator, const TensorInfo &info,
                          std::span<const std::byte> block) {
  if (isReplicated(info)) {
    std::shared_ptr<std::byte> data = allocateAligned(block.size());
    std::copy(block.begin(), block.end(), data.get());
    return {info.dtype, info.shape, data};
  }
  std::string mine;
  if (contributes(info, communicator.getRank()))
    mine.assign(reinterpret_cast<const char *>(block.data()), block.size());
  return unpackBlocks(info, communicator.exchange(mine, getLargestBlock(info)));
}
