//===- TrainPrograms.h - Training programs for tests ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The programs of Inputs/train.c: a linear regression for 2 or 3 ranks, and one
// that reads tokens.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_UNITTESTS_TRAINPROGRAMS_H
#define TPRT_UNITTESTS_TRAINPROGRAMS_H

#include "TestUtils.h"
#include "tprt/Session.h"

#include <nlohmann/json.hpp>

namespace tprt::test {

inline nlohmann::json readTrainManifest(const std::string &name) {
  nlohmann::json manifest =
      nlohmann::json::parse(readFile(TEST_INPUTS "/" + name + ".json"));
#if defined(__x86_64__)
  manifest["target"]["triple"] = "x86_64-pc-linux-gnu";
#else
  manifest["target"]["triple"] = "aarch64-linux-gnu";
#endif
  return manifest;
}

inline std::shared_ptr<const Artifact>
loadTrainManifest(const nlohmann::json &manifest) {
  TestDirectory directory;
  return Artifact::load(directory.write(
      "train.tpx", makeContainer(manifest.dump(), readFile(TRAIN_PROGRAM))));
}

/// `name`: "train.2", "train.3" or "tokens".
inline std::shared_ptr<const Artifact>
loadTrainProgram(const std::string &name) {
  return loadTrainManifest(readTrainManifest(name));
}

inline TensorMap makeRegressionWeights() {
  return {{"w", makeTensor<float>(Dtype::F32, {7}, {0, 1, 2, 3, 4, 5, 6})},
          {"b", makeTensor<float>(Dtype::F32, {}, {-1})},
          {"scale", makeTensor<float>(Dtype::F32, {}, {0.5})}};
}

/// `count` examples of y = Σ (f - 3) x_f, which the regression can learn.
inline TensorMap makeRegressionData(int64_t count) {
  std::vector<float> x, target;
  for (int64_t e = 0; e < count; ++e) {
    target.push_back(0);
    for (int64_t f = 0; f < 7; ++f) {
      x.push_back(static_cast<float>((e * 31 + f * f * 17) % 23) / 11 - 1);
      target.back() += (f - 3) * x.back();
    }
  }
  return {{"x", makeTensor<float>(Dtype::F32, {count, 7}, x)},
          {"target", makeTensor<float>(Dtype::F32, {count}, target)}};
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_TRAINPROGRAMS_H
