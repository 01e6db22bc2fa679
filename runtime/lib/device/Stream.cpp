//===- Stream.cpp - Order of one rank's work ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "device/Stream.h"

#include "cpu/Reduce.h"

using namespace tprt;

void HostStream::reduce(Reduction reduction, Dtype dtype,
                        const std::vector<const std::byte *> &operands,
                        const std::vector<std::byte *> &dsts, int64_t count) {
  tprt::reduce(reduction, dtype, operands, dsts, count);
}

std::byte *HostStream::getStaging(int64_t bytes) {
  if (stagingBytes < bytes) {
    staging = allocateAligned(bytes);
    stagingBytes = bytes;
  }
  return staging.get();
}
