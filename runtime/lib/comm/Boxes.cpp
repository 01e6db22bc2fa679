//===- Boxes.cpp - What a rank sends and receives -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/Boxes.h"

using namespace tprt;

Boxes tprt::makeBoxes(const Collective &collective, int64_t rank,
                      const std::vector<int64_t> &members) {
  Boxes boxes;
  int64_t width = byteWidth(collective.dtype);
  Shape zero(collective.operandShapes[rank].size(), 0);
  for (size_t p = 0; p < members.size(); ++p) {
    for (const Transfer &transfer : getTransfers(collective, members[p])) {
      int64_t bytes = numElements(transfer.size) * width;
      if (transfer.from != rank || bytes == 0)
        continue;
      StridedCopy strided(transfer.size,
                          {collective.operandShapes[rank], transfer.src},
                          {transfer.size, zero});
      boxes.sent.push_back(
          {static_cast<int64_t>(p), strided, boxes.sentBytes, bytes});
      boxes.sentBytes += bytes;
    }
    for (const Transfer &transfer : getTransfers(collective, rank)) {
      int64_t bytes = numElements(transfer.size) * width;
      if (transfer.from != members[p] || bytes == 0)
        continue;
      StridedCopy strided(transfer.size, {transfer.size, zero},
                          {collective.resultShapes[rank], transfer.dst});
      boxes.received.push_back(
          {static_cast<int64_t>(p), strided, boxes.receivedBytes, bytes});
      boxes.receivedBytes += bytes;
    }
  }
  return boxes;
}
