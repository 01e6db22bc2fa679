//===- Trace.cpp - A recording as a trace ---------------------------------===//

#include "RecordedWork.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

using namespace tprt;
using json = nlohmann::ordered_json;

// Threads of a rank's process.
static constexpr int computeTrack = 1, communicationTrack = 2;

/// When the first slice begins: times of a trace count from there.
static int64_t findStart(const Recording &recording) {
  int64_t start = INT64_MAX;
  for (const std::vector<Slice> &slices : recording.ranks)
    for (const Slice &slice : slices)
      start = std::min(start, slice.begin);
  return start;
}

/// Microseconds, the format's unit.
static double toMicroseconds(int64_t nanoseconds) {
  return nanoseconds / 1000.0;
}

static json makeName(const char *what, int64_t rank, int track,
                     const std::string &name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", rank},
          {"tid", track},
          {"args", {{"name", name}}}};
}

static std::string joinWords(const std::string &a, const std::string &b) {
  return a.empty() || b.empty() ? a + b : a + " " + b;
}

static json makeSlice(const Manifest &manifest, int64_t rank,
                      const Slice &slice, int64_t start) {
  double seconds = (slice.end - slice.begin) * 1e-9;
  json event = {{"ph", "X"},
                {"name", ""},
                {"cat", "run"},
                {"pid", rank},
                {"tid", computeTrack},
                {"ts", toMicroseconds(slice.begin - start)},
                {"dur", toMicroseconds(slice.end - slice.begin)}};
  json args = {{"run", slice.run}};
  if (slice.kind == Slice::Kind::Run) {
    event["name"] = "run " + std::to_string(slice.index);
  } else {
    RecordedWork work = getWork(manifest, slice);
    bool isCollective = slice.kind == Slice::Kind::Collective;
    event["name"] = joinWords(isCollective ? work.kind : work.op, work.fqn);
    event["cat"] = isCollective ? "collective" : "compute";
    event["tid"] = isCollective ? communicationTrack : computeTrack;
    if (isCollective)
      args["id"] = slice.index;
    args["fqn"] = work.fqn;
    args["kind"] = work.kind;
    if (!work.op.empty())
      args["op"] = work.op;
    args["bytes"] = work.bytes;
    if (seconds > 0)
      args["GB/s"] = work.bytes / seconds * 1e-9;
    if (work.flops > 0 && seconds > 0)
      args["GFLOP/s"] = work.flops / seconds * 1e-9;
  }
  event["args"] = std::move(args);
  return event;
}

namespace {

/// Where a rank's part in a collective begins.
struct Start {
  int64_t begin;
  int64_t rank;

  auto operator<=>(const Start &) const = default;
};

} // namespace

/// Arrows from the rank that came first to the one that came last: what a
/// collective waits for is at its end.
static void addFlows(const Manifest &manifest, const Recording &recording,
                     int64_t start, json &events) {
  // Of one call, by run, collective and group; a collective runs once in a run.
  std::map<std::array<int64_t, 3>, std::vector<Start>> calls;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
    for (const Slice &slice : recording.ranks[rank]) {
      if (slice.kind != Slice::Kind::Collective)
        continue;
      const std::vector<int64_t> *group =
          manifest.collectives[slice.index].getGroup(rank);
      calls[{slice.run, slice.index, group->front()}].push_back(
          {slice.begin, static_cast<int64_t>(rank)});
    }
  int64_t id = 0;
  for (auto &[key, starts] : calls) {
    ++id;
    if (starts.size() < 2)
      continue;
    std::sort(starts.begin(), starts.end());
    for (size_t i = 0; i < starts.size(); ++i) {
      json event = {{"ph", i == 0                   ? "s"
                           : i + 1 == starts.size() ? "f"
                                                    : "t"},
                    {"name", toString(manifest.collectives[key[1]].kind)},
                    {"cat", "collective"},
                    {"id", id},
                    {"pid", starts[i].rank},
                    {"tid", communicationTrack},
                    {"ts", toMicroseconds(starts[i].begin - start)}};
      if (i + 1 == starts.size())
        event["bp"] = "e"; // ends at the slice around it, not the next one
      events.push_back(std::move(event));
    }
  }
}

std::string tprt::makeTrace(const Manifest &manifest,
                            const Recording &recording) {
  checkRecording(manifest, recording);
  int64_t start = findStart(recording);
  json events = json::array();
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    if (recording.ranks[rank].empty())
      continue;
    events.push_back(makeName("process_name", rank, computeTrack,
                              "rank " + std::to_string(rank)));
    events.push_back(makeName("thread_name", rank, computeTrack, "compute"));
    events.push_back(
        makeName("thread_name", rank, communicationTrack, "communication"));
    for (const Slice &slice : recording.ranks[rank])
      events.push_back(makeSlice(manifest, rank, slice, start));
  }
  addFlows(manifest, recording, start, events);
  json trace = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}
