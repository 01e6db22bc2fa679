//===- Replicas.cpp - Comparison of what ranks hold alike -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exec/Replicas.h"

#include "support/Checksum.h"

#include <cstring>
#include <map>

using namespace tprt;

/// For each rank after the first that holds a block, these two ranks.
static std::vector<std::pair<size_t, size_t>>
findReplicas(const std::vector<Block> &shards) {
  std::map<Block, size_t> holders;
  std::vector<std::pair<size_t, size_t>> replicas;
  for (size_t rank = 0; rank < shards.size(); ++rank)
    if (auto [holder, isFirst] = holders.try_emplace(shards[rank], rank);
        !isFirst)
      replicas.emplace_back(holder->second, rank);
  return replicas;
}

std::string tprt::findDivergence(const Manifest &manifest,
                                 const ShardedTensors &parameters,
                                 Communicator &communicator) {
  struct Compared {
    const TensorInfo &info;
    std::vector<std::pair<size_t, size_t>> replicas;
  };
  std::vector<Compared> compared;
  std::vector<uint32_t> checksums;
  for (size_t i = 0; i < manifest.parameters.size(); ++i) {
    const TensorInfo &info = manifest.parameters[i];
    if (!info.isUpdated || !info.neutralRanks.empty())
      continue;
    std::vector<std::pair<size_t, size_t>> replicas = findReplicas(info.shards);
    if (replicas.empty())
      continue;
    Tensor block = parameters.getBlock(i, communicator.getRank());
    compared.push_back({info, std::move(replicas)});
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
  for (size_t i = 0; i < compared.size(); ++i)
    for (auto [first, rank] : compared[i].replicas)
      if (get(first, i) != get(rank, i))
        return "ranks " + std::to_string(first) + " and " +
               std::to_string(rank) +
               " hold different values of the same "
               "elements of parameter '" +
               compared[i].info.name + "'";
  return "";
}
