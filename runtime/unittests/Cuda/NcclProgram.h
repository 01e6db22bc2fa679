//===- NcclProgram.h - The toy program over two devices ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_CUDA_NCCLPROGRAM_H
#define TPRT_UNITTESTS_CUDA_NCCLPROGRAM_H

#include "TestedBackends.h"
#include "ToyManifest.h"
#include "tprt/Artifact.h"
#include "tprt/TensorMap.h"

#include <nlohmann/json.hpp>

namespace tprt::test {

/// An artifact whose program is the function `entry` of Inputs/program.c, or
/// both programs of that file if it is "buckets".
inline std::string makeProgram(const std::string &entry) {
  if (entry == "buckets")
    return makeContainer(makeToyDeviceBuckets().dump(), readFile(CUDA_PROGRAM));
  nlohmann::json manifest = makeToyDeviceManifest(entry);
  if (entry == "started")
    manifest["programs"][0]["arena_bytes"] = 128;
  for (nlohmann::json &collective : manifest["programs"][0]["collectives"])
    collective["started"] = entry == "started";
  return makeContainer(manifest.dump(), readFile(CUDA_PROGRAM));
}

inline const TensorMap &getInputs() {
  static const TensorMap inputs = {
      {"x", makeTensor<float>(Dtype::F32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}};
  return inputs;
}
inline const TensorMap &getWeights() {
  static const TensorMap weights = {
      {"w", makeTensor<float>(Dtype::F32, {4, 3},
                              {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1})},
      {"b", makeTensor<float>(Dtype::F32, {3}, {10, 20, 30})}};
  return weights;
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_CUDA_NCCLPROGRAM_H
