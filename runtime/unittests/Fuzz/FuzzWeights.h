//===- FuzzWeights.h - A small file of weights ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_FUZZ_FUZZWEIGHTS_H
#define TPRT_UNITTESTS_FUZZ_FUZZWEIGHTS_H

#include "tprt/Weights.h"

namespace tprt::fuzz {

/// Writes a tensor 'w' of three elements.
inline void writeWeights(const std::string &directory,
                         const std::string &name) {
  static const float values[] = {1, 2, 3};
  std::vector<TensorSource> sources;
  sources.push_back(makeSource("w", Dtype::F32, {3}, [] {
    return Tensor{Dtype::F32,
                  {3},
                  {reinterpret_cast<const std::byte *>(values),
                   [](const std::byte *) {}}};
  }));
  writeSafetensors(directory, name, std::move(sources));
}

} // namespace tprt::fuzz

#endif // TPRT_UNITTESTS_FUZZ_FUZZWEIGHTS_H
