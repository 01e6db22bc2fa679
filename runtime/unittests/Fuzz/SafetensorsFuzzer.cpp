//===- SafetensorsFuzzer.cpp - Any bytes as a file of weights -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FuzzFile.h"

#include "tprt/Weights.h"

using namespace tprt;
using namespace tprt::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryFile file(asText(data, size));
  readOrRefuse([&] {
    for (const auto &[name, entry] : readWeights(file.getPath())) {
      touch(entry.data.get(), entry.numBytes);
      if (entry.isSupported)
        touch(entry.tensor.data.get(), entry.tensor.getNumBytes());
    }
  });
  return 0;
}
