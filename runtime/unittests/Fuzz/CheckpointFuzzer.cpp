//===- CheckpointFuzzer.cpp - Any text as checkpoint.json -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Beside files model.safetensors and optimizer.safetensors that have a tensor
// each.
//
//===----------------------------------------------------------------------===//

#include "FuzzFile.h"
#include "FuzzWeights.h"

#include "tprt/Checkpoint.h"

#include <filesystem>

using namespace tprt;
using namespace tprt::fuzz;

static std::string prepare() {
  std::string directory = makeDirectory() + "/step-00000002";
  std::filesystem::create_directory(directory);
  writeWeights(directory, "model.safetensors");
  writeWeights(directory, "optimizer.safetensors");
  return directory;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::string directory = prepare();
  writeFile(directory + "/checkpoint.json", asText(data, size));
  readOrRefuse([] {
    Checkpoint checkpoint = readCheckpoint(directory);
    verifyCheckpoint(checkpoint);
    for (const auto &[name, entry] : readCheckpointTensors(checkpoint))
      touch(entry.data.get(), entry.numBytes);
  });
  readOrRefuse([] {
    listCheckpoints(std::filesystem::path(directory).parent_path().string());
  });
  return 0;
}
