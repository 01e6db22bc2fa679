//===- FlightRecorder.cpp - A rank's last collectives ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "profile/FlightRecorder.h"

#include "tprt/File.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace tprt;
using json = nlohmann::ordered_json;

int64_t FlightRecorder::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void FlightRecorder::end(int64_t id, int64_t bytes) {
  for (size_t back = 1; back <= std::min(numBegun, numKept); ++back) {
    Entry &entry = entries[(numBegun - back) % numKept];
    if (entry.id != id || entry.end != 0)
      continue;
    entry.end = now();
    entry.bytes = bytes;
    return;
  }
}

static std::string getHostName() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

void FlightRecorder::write(const std::string &directory,
                           const Manifest &manifest,
                           const Communicator &communicator,
                           const std::string &error) const {
  json collectives = json::array();
  for (size_t back = std::min(numBegun, numKept); back > 0; --back) {
    const Entry &entry = entries[(numBegun - back) % numKept];
    const Collective &collective = manifest.collectives[entry.id];
    json each = {{"run", entry.run},
                 {"id", entry.id},
                 {"kind", toString(collective.kind)},
                 {"fqn", collective.fqn},
                 {"reason", collective.reason},
                 {"began", entry.begin / 1e9}};
    if (entry.end) {
      each["seconds"] = (entry.end - entry.begin) / 1e9;
      each["bytes"] = entry.bytes;
    }
    collectives.push_back(std::move(each));
  }
  json report = {{"schema", 1},
                 {"rank", communicator.getRank()},
                 {"world_size", manifest.worldSize},
                 {"host", getHostName()},
                 {"process", ::getpid()},
                 {"error", error},
                 {"written", now() / 1e9}};
  if (std::string activity = communicator.describeActivity(); !activity.empty())
    report["device"] = activity;
  report["runs"] = run;
  report["collectives"] = std::move(collectives);
  OutputFile file(directory + "/flight-" +
                  std::to_string(communicator.getRank()) + ".json");
  file.write(report.dump(/*indent=*/1, ' ', /*ensure_ascii=*/false,
                         json::error_handler_t::replace) +
             "\n");
  file.commit();
}
