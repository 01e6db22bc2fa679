//===- WeightIndexFuzzer.cpp - Any text as an index of weights ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a directory with one file, model.safetensors, that has a tensor 'w'.
//
//===----------------------------------------------------------------------===//

#include "FuzzFile.h"
#include "FuzzWeights.h"

using namespace tprt;
using namespace tprt::fuzz;

static std::string prepare() {
  std::string directory = makeDirectory();
  writeWeights(directory, "model.safetensors");
  return directory;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::string path = prepare() + "/model.safetensors.index.json";
  writeFile(path, asText(data, size));
  readOrRefuse([] {
    for (const auto &[name, entry] : readWeights(path))
      touch(entry.data.get(), entry.numBytes);
  });
  return 0;
}
