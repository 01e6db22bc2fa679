//===- HaloExchange.cpp - What ranks need for their windows ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Interfaces/HaloExchange.h"

using namespace mlir;
using namespace mlir::tp;

static int64_t getEnd(Interval interval) {
  return interval.offset + interval.size;
}

HaloExchange::HaloExchange(const Halo &halo, ArrayRef<AxisRefAttr> axes,
                           MeshOp mesh) {
  auto list = AxisListAttr::get(mesh.getContext(), axes);
  SmallVector<int64_t> group = mesh.getGroupOf(mesh.getRank(0), axes);
  auto getBlock = [&](int64_t size, int64_t rank) {
    return getDimBlock(size, list, mesh, rank).front();
  };
  bool isAligned = true;
  for (int64_t rank : group) {
    blocks.push_back(getBlock(halo.resultSize, rank));
    isAligned &= !halo.isTransposed || blocks.back().size == 0 ||
                 blocks.back().offset % halo.stride == 0;
  }
  for (auto [rank, block] : llvm::zip_equal(group, blocks)) {
    computed.push_back(block);
    if (!isAligned && block.size > 0)
      computed.back() = {block.offset - block.offset % halo.stride,
                         block.size + halo.stride - 1};
    Interval own = getBlock(halo.operandSize, rank);
    Interval wanted = halo.getNeeded(computed.back());
    held.push_back(own);
    needed.push_back(wanted);
    if (wanted.size == 0)
      continue;
    // All of it may lie beyond one end.
    int64_t beyond =
        std::max(-wanted.offset, getEnd(wanted) - halo.operandSize);
    margin = std::max(margin, std::min(beyond, wanted.size));
    isLocal &= wanted.offset == own.offset && getEnd(wanted) <= getEnd(own);
  }
}

int64_t HaloExchange::getNumReceived(int64_t index) const {
  if (isLocal)
    return 0;
  Interval wanted = needed[index];
  auto getNumShared = [&](Interval block) {
    int64_t begin = std::max(wanted.offset, block.offset);
    return std::max<int64_t>(std::min(getEnd(wanted), getEnd(block)) - begin,
                             0);
  };
  int64_t size = getEnd(held.back());
  return getNumShared({0, size}) - getNumShared(held[index]);
}
