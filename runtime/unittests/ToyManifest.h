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
  manifest["programs"][0]["entries"] = {entry};
#if defined(__x86_64__)
  manifest["target"]["triple"] = "x86_64-pc-linux-gnu";
#else
  manifest["target"]["triple"] = "aarch64-linux-gnu";
#endif
  return manifest;
}

/// Two programs that share the parameters: `short` for an x of 2 rows, `long`
/// for one of 4.
inline nlohmann::json makeToyBuckets() {
  using nlohmann::json;
  json manifest = makeToyManifest("tpx_main");
  json &programs = manifest["programs"];
  programs[0]["name"] = "short";
  programs[0]["inputs"][0]["symbolic_shape"] = json::array({"s0", "4"});
  programs[0]["outputs"][0]["symbolic_shape"] = json::array({"s0", "3"});
  json program = programs[0];
  program["name"] = "long";
  program["entries"] = json::array({"four_rows"});
  program["arena_bytes"] = 128;
  for (const char *list : {"inputs", "outputs"}) {
    json &tensor = program[list][0];
    tensor["shape"][0] = 4;
    for (json &shard : tensor["shards"])
      shard[0][1] = 4;
  }
  for (json &collective : program["collectives"]) {
    collective["operand_shapes"] = collective["result_shapes"] =
        json::array({{4, 3}, {4, 3}});
    collective["bytes_by_rank"] = json::array({48, 48});
  }
  programs.push_back(program);
  return manifest;
}

/// The same programs for a CUDA device, the fake one.
inline nlohmann::json makeForDevice(nlohmann::json manifest) {
  manifest["target"]["device"] = "cuda";
  manifest["target"]["architectures"] = {0};
  for (nlohmann::json &program : manifest["programs"])
    program["device_code"] = TPRT_DEVICE_CODE_SYMBOL;
  return manifest;
}
inline nlohmann::json makeToyDeviceManifest(const std::string &entry) {
  return makeForDevice(makeToyManifest(entry));
}

/// The two programs for that device. The code of `long` has its kernels in
/// another order.
inline nlohmann::json makeToyDeviceBuckets() {
  nlohmann::json manifest = makeForDevice(makeToyBuckets());
  manifest["programs"][1]["device_code"] = "other_device_code";
  return manifest;
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_TOYMANIFEST_H
