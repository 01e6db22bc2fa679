//===- OutputsOfRank.cpp - The outputs of one rank ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exec/OutputsOfRank.h"

#include "exec/GatherBlocks.h"

#include <algorithm>

using namespace tprt;

RankOutputs::~RankOutputs() = default;

const std::byte *OutputsOfRank::read(size_t index, int64_t first,
                                     int64_t count) {
  Dtype dtype = program.outputs[index].dtype;
  const std::byte *src =
      static_cast<const std::byte *>(blocks[index]) + first * byteWidth(dtype);
  if (device.sharesHostMemory())
    return src;
  host.resize(count * byteWidth(dtype));
  device.read(src, dtype, {count}, makeBox({0}, {count}), host.data());
  return host.data();
}

TensorMap OutputsOfRank::gather(const std::set<std::string> &kept) {
  TensorMap whole;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const TensorInfo &info = program.outputs[i];
    size_t bytes = info.getShardBytes(getRank());
    const std::byte *block = read(i, 0, bytes / byteWidth(info.dtype));
    if (kept.contains(info.name)) {
      std::shared_ptr<std::byte> copy = allocateAligned(bytes);
      std::copy_n(block, bytes, copy.get());
      whole[info.name] = {info.dtype, info.shards[getRank()].getShape(), copy};
      continue;
    }
    whole[info.name] = gatherBlocks(communicator, info, {block, bytes});
  }
  return whole;
}
