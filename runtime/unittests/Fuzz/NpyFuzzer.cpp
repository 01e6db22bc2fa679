//===- NpyFuzzer.cpp - Any bytes as a NumPy array -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FuzzFile.h"

#include "tprt/Npy.h"

using namespace tprt;
using namespace tprt::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryFile file(asText(data, size));
  readOrRefuse([&] {
    Tensor tensor = readNpy(file.getPath());
    touch(tensor.data.get(), tensor.getNumBytes());
  });
  readOrRefuse([&] {
    NpyArray array = readNpyArray(file.getPath());
    touch(array.data.get(), numElements(array.shape) * array.elementBytes);
  });
  return 0;
}
