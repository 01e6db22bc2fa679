//===- ToyManifest.h - The manifest of the toy program ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_TOYMANIFEST_H
#define TPRT_UNITTESTS_TOYMANIFEST_H

#include "TestUtils.h"
#include <nlohmann/json.hpp>

namespace tprt::test {

/// Inputs/toy.json, for another entry point of this host: y = x * w + b over 2
/// ranks.
inline nlohmann::json makeToyManifest(const std::string &entry) {
  nlohmann::json manifest = nlohmann::json::parse(readFile(TOY_MANIFEST));
  manifest["entry"] = entry;
#if defined(__x86_64__)
  manifest["target"]["triple"] = "x86_64-pc-linux-gnu";
#else
  manifest["target"]["triple"] = "aarch64-linux-gnu";
#endif
  return manifest;
}

/// The same for a CUDA device, the fake one.
inline nlohmann::json makeToyDeviceManifest(const std::string &entry) {
  nlohmann::json manifest = makeToyManifest(entry);
  manifest["target"]["device"] = "cuda";
  manifest["target"]["architectures"] = {0};
  return manifest;
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_TOYMANIFEST_H
