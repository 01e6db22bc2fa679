//===- Trace.cpp - A recording as a trace ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "profile/RecordedWork.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

using namespace tprt;
using json = nlohmann::ordered_json;

// Track numbers within a rank's process. Collectives that overlap in time have
// a track each, starting with communicationTrack.
static constexpr int computeTrack = 1, communicationTrack = 2;

/// The track of each slice of a rank.
static std::vector<int> assignTracks(const std::vector<Slice> &slices) {
  std::vector<int> tracks(slices.size(), computeTrack);
  std::vector<size_t> collectives;
  for (size_t i = 0; i < slices.size(); ++i)
    if (slices[i].kind == Slice::Kind::Collective)
      collectives.push_back(i);
  std::sort(collectives.begin(), collectives.end(), [&](size_t a, size_t b) {
    return std::tie(slices[a].begin, a) < std::tie(slices[b].begin, b);
  });
  std::vector<int64_t> ends; // of the last slice, by track
  for (size_t i : collectives) {
    auto free = std::find_if(ends.begin(), ends.end(), [&](int64_t end) {
      return end <= slices[i].begin;
    });
    tracks[i] = communicationTrack + (free - ends.begin());
    if (free == ends.end())
      free = ends.insert(free, 0);
    *free = slices[i].end;
  }
  return tracks;
}

/// The start of the first slice, which is time zero of a trace.
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
                      const Slice &slice, int track, int64_t start) {
  double seconds = (slice.end - slice.begin) * 1e-9;
  json event = {{"ph", "X"},
                {"name", ""},
                {"cat", "run"},
                {"pid", rank},
                {"tid", track},
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
    if (isCollective)
      args["id"] = slice.index;
    if (slice.waited)
      args["waited_us"] = toMicroseconds(slice.getDuration());
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

/// The start of a rank's part in a collective.
struct Start {
  int64_t begin;
  int64_t rank;
  int track;

  auto operator<=>(const Start &) const = default;
};

} // namespace

/// Draws an arrow from the rank that arrived first to the one that arrived
/// last, which is the one that the collective waited for.
static void addFlows(const Manifest &manifest, const Recording &recording,
                     const std::vector<std::vector<int>> &tracks, int64_t start,
                     json &events) {
  // The starts of one call, by run, collective and group. A collective runs at
  // most once per run.
  std::map<std::array<int64_t, 3>, std::vector<Start>> calls;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
    for (size_t i = 0; i < recording.ranks[rank].size(); ++i) {
      const Slice &slice = recording.ranks[rank][i];
      if (slice.kind != Slice::Kind::Collective)
        continue;
      const std::vector<int64_t> *group =
          manifest.collectives[slice.index].getGroup(rank);
      calls[{slice.run, slice.index, group->front()}].push_back(
          {slice.begin, static_cast<int64_t>(rank), tracks[rank][i]});
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
                    {"tid", starts[i].track},
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
  std::vector<std::vector<int>> tracks;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    const std::vector<Slice> &slices = recording.ranks[rank];
    const std::vector<int> &own = tracks.emplace_back(assignTracks(slices));
    if (slices.empty())
      continue;
    events.push_back(makeName("process_name", rank, computeTrack,
                              "rank " + std::to_string(rank)));
    events.push_back(makeName("thread_name", rank, computeTrack, "compute"));
    int last =
        std::max(*std::max_element(own.begin(), own.end()), communicationTrack);
    for (int track = communicationTrack; track <= last; ++track)
      events.push_back(makeName(
          "thread_name", rank, track,
          track == communicationTrack
              ? "communication"
              : "communication " + std::to_string(track - computeTrack)));
    for (size_t i = 0; i < slices.size(); ++i)
      events.push_back(makeSlice(manifest, rank, slices[i], own[i], start));
  }
  addFlows(manifest, recording, tracks, start, events);
  json trace = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}
