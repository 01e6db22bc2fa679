//===- Replicas.cpp - Comparison of what ranks hold alike -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exec/Replicas.h"

#include "support/Checksum.h"

#include <algorithm>
#include <cstring>

using namespace tprt;

static bool isReplicated(const TensorInfo &info) {
  for (size_t rank = 1; rank < info.shards.size(); ++rank)
    if (std::find(info.shards.begin(), info.shards.begin() + rank,
                  info.shards[rank]) != info.shards.begin() + rank)
      return true;
  return false;
}

std::string tprt::findDivergence(const Manifest &manifest,
                                 const ShardedTensors &parameters,
                                 Communicator &communicator) {
  std::vector<const TensorInfo *> compared;
  std::vector<uint32_t> checksums;
  for (size_t i = 0; i < manifest.parameters.size(); ++i) {
    const TensorInfo &info = manifest.parameters[i];
    if (!info.isUpdated || !info.neutralRanks.empty() || !isReplicated(info))
      continue;
    Tensor block = parameters.getBlock(i, communicator.getRank());
    compared.push_back(&info);
    checksums.push_back(updateCrc(0, block.data.get(), block.getNumBytes()));
  }
  size_t bytes = checksums.size() * sizeof(uint32_t);
  std::vector<std::string> all = communicator.exchange(
      {reinterpret_cast<const char *>(checksums.data()), bytes}, bytes);
  auto get = [&](size_t rank, size_t parameter) {
    uint32_t checksum = 0;
    std::memcpy(&checksum, all[rank].data() + parameter * sizeof(checksum),
                sizeof(checksum));
    return checksum;
  };
  for (size_t i = 0; i < compared.size(); ++i) {
    const std::vector<Block> &shards = compared[i]->shards;
    for (size_t rank = 1; rank < shards.size(); ++rank) {
      size_t first = std::find(shards.begin(), shards.end(), shards[rank]) -
                     shards.begin();
      if (get(first, i) != get(rank, i))
        return "ranks " + std::to_string(first) + " and " +
               std::to_string(rank) +
               " hold different values of the same "
               "elements of parameter '" +
               compared[i]->name + "'";
    }
  }
  return "";
}
