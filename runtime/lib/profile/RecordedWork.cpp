//===- RecordedWork.cpp - Ops and collectives in a recording --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "profile/RecordedWork.h"

using namespace tprt;

RecordedWork tprt::getWork(const Manifest &manifest, const Slice &slice) {
  if (slice.kind == Slice::Kind::Op) {
    const OpInfo &op = manifest.ops[slice.index];
    return {op.fqn, op.op, op.kind, op.flops, op.bytes, op.dtype};
  }
  const Collective &collective = manifest.collectives[slice.index];
  return {
      collective.fqn, "",          std::string(toString(collective.kind)), 0,
      slice.bytes,    std::nullopt};
}

void tprt::checkRecording(const Manifest &manifest,
                          const Recording &recording) {
  auto check = [](int64_t index, size_t size, const char *what) {
    if (index < 0 || index >= static_cast<int64_t>(size))
      throw executionError("the program ran " + std::string(what) + " " +
                           std::to_string(index) + ", but its manifest lists " +
                           std::to_string(size));
  };
  for (const std::vector<Slice> &slices : recording.ranks)
    for (const Slice &slice : slices) {
      if (slice.kind == Slice::Kind::Op)
        check(slice.index, manifest.ops.size(), "op");
      else if (slice.kind == Slice::Kind::Collective)
        check(slice.index, manifest.collectives.size(), "collective");
    }
}
