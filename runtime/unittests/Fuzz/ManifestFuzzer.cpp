//===- ManifestFuzzer.cpp - Any text as an artifact's manifest ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FuzzFile.h"

#include "tprt/Artifact.h"
#include "tprt/Report.h"

using namespace tprt;
using namespace tprt::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryFile file(makeContainer(asText(data, size), "no object"));
  readOrRefuse([&] {
    Manifest manifest = readManifest(file.getPath());
    touch(describe(manifest).data(), 1);
    auto check = [&](const std::vector<TensorInfo> &list) {
      for (const TensorInfo &info : list)
        for (int64_t rank = 0; rank < manifest.worldSize; ++rank)
          if (info.getShardBytes(rank) < 0)
            std::abort();
    };
    check(manifest.parameters);
    for (const Program &program : manifest.programs) {
      check(program.inputs);
      check(program.outputs);
    }
  });
  readOrRefuse([&] { Artifact::load(file.getPath()); });
  return 0;
}
