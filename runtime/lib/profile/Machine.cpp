//===- Machine.cpp - The limits of a machine ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Machine.h"

#include "support/Json.h"
#include "tprt/File.h"

#include <algorithm>
#include <cmath>

using namespace tprt;
using nlohmann::json;

static double getPositive(const json &value) {
  double number = value.get<double>();
  if (!(number > 0) || !std::isfinite(number))
    throw inputError("found " + value.dump() + ", expected a positive number");
  return number;
}

static int64_t getRanks(const json &value) {
  int64_t number = getInteger(value);
  if (number < 1)
    throw inputError("found " + value.dump() + " ranks, expected at least 1");
  return number;
}

Machine Machine::read(const std::string &path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  auto isNone = [&](const std::exception &error) {
    return inputError("'" + path +
                      "' is not a description that tp-run --calibrate wrote: " +
                      error.what());
  };
  json root;
  try {
    root = parseJson(asText(file->getBytes()));
  } catch (const Error &error) {
    throw isNone(error);
  }
  try {
    const json &device = root.at("device"), &node = root.at("node");
    Machine machine;
    for (const auto &[name, value] : device.at("flops").items()) {
      std::optional<Dtype> dtype = parseDtype(name);
      if (!dtype)
        throw inputError("device.flops: unknown dtype '" + name + "'");
      machine.flops[*dtype] = getPositive(value);
    }
    if (!machine.flops.contains(Dtype::F32))
      throw inputError("device.flops: missing 'f32'");
    machine.memoryBandwidth = getPositive(device.at("memory_bandwidth"));
    machine.sharedBandwidth = getPositive(node.at("memory_bandwidth"));
    double numCores = getPositive(node.at("devices"));
    if (numCores > 1 << 20)
      throw inputError("node.devices: found " + node.at("devices").dump());
    machine.numCores = static_cast<int64_t>(numCores);
    for (const json &entry : root.at("links").at(0).at("collectives"))
      for (int i = 0; i <= static_cast<int>(lastCollectiveKind); ++i)
        if (auto kind = static_cast<CollectiveKind>(i);
            entry.at("kind") == toString(kind))
          machine.collectives.push_back(
              {kind, getRanks(entry.at("ranks")),
               std::max(0.0, entry.at("latency").get<double>()),
               getPositive(entry.at("bandwidth"))});
    return machine;
  } catch (const Error &error) {
    throw inputError("'" + path + "': " + error.what());
  } catch (const json::exception &error) {
    throw isNone(error);
  }
}

double Machine::getComputeLimit(double numFlops, double bytes, Dtype dtype,
                                int64_t numRanks) const {
  auto found = flops.find(dtype);
  double rate = found == flops.end() ? flops.at(Dtype::F32) : found->second;
  double cores = static_cast<double>(numCores) / numRanks;
  double bandwidth = std::min(memoryBandwidth * std::max(cores, 1.0),
                              sharedBandwidth / numRanks);
  return std::max(numFlops / (rate * cores), bytes / bandwidth);
}

std::optional<double> Machine::getCollectiveLimit(CollectiveKind kind,
                                                  double bytes,
                                                  int64_t groupSize) const {
  const Link *nearest = nullptr;
  for (const Link &link : collectives)
    if (link.kind == kind &&
        (!nearest || std::abs(link.ranks - groupSize) <
                         std::abs(nearest->ranks - groupSize)))
      nearest = &link;
  if (!nearest)
    return std::nullopt;
  return nearest->latency + bytes / nearest->bandwidth;
}
