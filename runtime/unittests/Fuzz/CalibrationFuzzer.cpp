//===- CalibrationFuzzer.cpp - Any text as a machine that was measured ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FuzzFile.h"

#include "tprt/Machine.h"

using namespace tprt;
using namespace tprt::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryFile file(asText(data, size));
  readOrRefuse([&] {
    Machine machine = Machine::read(file.getPath());
    for (int64_t numRanks : {1, 4, 100000}) {
      machine.getComputeLimit(1e9, 1e9, Dtype::BF16, numRanks);
      machine.getCollectiveLimit(CollectiveKind::AllReduce, 1e9, numRanks);
    }
  });
  return 0;
}
