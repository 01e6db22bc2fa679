//===- MeasuredRun.cpp - A trace of tp-run as the page shows it -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Advice/Page/ReportPage.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

using namespace mlir;
using namespace mlir::tp;
using llvm::json::Array;
using llvm::json::Object;

namespace {

/// A slice of a trace; times are microseconds from the trace's start.
struct TraceSlice {
  int64_t rank, track, run;
  double begin, end;
  /// Of a collective; none for computation.
  std::optional<int64_t> id;
  /// Of a collective that overlaps with computation: the time before `end` in
  /// which the rank did nothing else.
  std::optional<double> waited;
};

struct Trace {
  std::vector<TraceSlice> slices;
  /// When the last rank arrives at the collective whose slice begins at a time
  /// on a rank's track: {rank, track, time}.
  std::map<std::tuple<int64_t, int64_t, double>, double> lastArrivals;
};

llvm::Error fail(const Twine &message) {
  return llvm::createStringError(message);
}

/// Reads what `tp-run --trace` writes (docs/Runtime.md).
llvm::Expected<Trace> readTrace(const llvm::json::Value &json) {
  const char *const wrong = "this isn't what tp-run writes with '--trace'";
  const Object *object = json.getAsObject();
  const Array *events = object ? object->getArray("traceEvents") : nullptr;
  if (!events)
    return fail(wrong);
  Trace trace;
  // By arrow: the places where its slices begin.
  std::map<int64_t, std::vector<std::tuple<int64_t, int64_t, double>>> arrows;
  for (const llvm::json::Value &each : *events) {
    const Object *event = each.getAsObject();
    std::optional<StringRef> phase;
    if (event)
      phase = event->getString("ph");
    if (!phase)
      return fail(wrong);
    if (*phase == "M")
      continue;
    auto rank = event->getInteger("pid"), track = event->getInteger("tid");
    auto begin = event->getNumber("ts");
    if (!rank || !track || !begin)
      return fail(wrong);
    if (*phase != "X") {
      auto arrow = event->getInteger("id");
      if (!arrow)
        return fail(wrong);
      arrows[*arrow].emplace_back(*rank, *track, *begin);
      continue;
    }
    auto category = event->getString("cat");
    auto duration = event->getNumber("dur");
    const Object *args = event->getObject("args");
    auto run = args ? args->getInteger("run") : std::nullopt;
    if (!category || !duration || !run)
      return fail(wrong);
    if (*category == "run")
      continue;
    TraceSlice slice{*rank, *track, *run, *begin, *begin + *duration, {}, {}};
    if (*category == "collective") {
      slice.id = args->getInteger("id");
      if (!slice.id)
        return fail(wrong);
      slice.waited = args->getNumber("waited_us");
    }
    trace.slices.push_back(slice);
  }
  for (auto &[arrow, places] : arrows) {
    double last = std::get<2>(places.front());
    for (auto &place : places)
      last = std::max(last, std::get<2>(place));
    for (auto &place : places)
      trace.lastArrivals[place] = last;
  }
  if (trace.slices.empty())
    return fail("it has no run");
  return trace;
}

/// Fails unless the ranks and the collectives of `trace` are in `report`.
llvm::Error check(const Trace &trace, const Object &report) {
  const Object *mesh = report.getObject("mesh");
  const Array *collectives = report.getArray("collectives");
  auto ranks = mesh ? mesh->getInteger("ranks") : std::nullopt;
  if (!ranks || !collectives)
    return fail("the report has no mesh or no collectives");
  for (const TraceSlice &slice : trace.slices) {
    if (slice.rank < 0 || slice.rank >= *ranks)
      return fail("it has the rank " + Twine(slice.rank) +
                  "; the report is of " + Twine(*ranks) + " ranks");
    if (slice.id && (*slice.id < 0 ||
                     static_cast<size_t>(*slice.id) >= collectives->size()))
      return fail("it has the collective " + Twine(*slice.id) +
                  "; the report has " + Twine(collectives->size()));
  }
  return llvm::Error::success();
}

/// The run whose length is the median, and the number of runs.
std::pair<int64_t, int64_t> findMedianRun(const Trace &trace) {
  std::map<int64_t, std::pair<double, double>> spans;
  for (const TraceSlice &slice : trace.slices) {
    auto [it, isNew] = spans.try_emplace(slice.run, slice.begin, slice.end);
    it->second.first = std::min(it->second.first, slice.begin);
    it->second.second = std::max(it->second.second, slice.end);
  }
  std::vector<std::pair<double, int64_t>> lengths;
  for (auto &[run, span] : spans)
    lengths.emplace_back(span.second - span.first, run);
  llvm::sort(lengths);
  return {lengths[(lengths.size() - 1) / 2].second,
          static_cast<int64_t>(lengths.size())};
}

/// The first rank of each class: a class is in strided parts.
std::vector<int64_t> findFirstRanks(const Object &report) {
  std::vector<int64_t> ranks;
  if (const Array *classes = report.getArray("rank_classes"))
    for (const llvm::json::Value &each : *classes) {
      std::optional<int64_t> first;
      const Object *object = each.getAsObject();
      if (const Array *parts = object ? object->getArray("ranks") : nullptr)
        for (const llvm::json::Value &part : *parts)
          if (const Object *set = part.getAsObject())
            if (auto offset = set->getInteger("offset"))
              first = std::min(first.value_or(*offset), *offset);
      if (first)
        ranks.push_back(*first);
    }
  return ranks;
}

/// Slices of computation that follow each other at once count as one.
constexpr double kGapMicroseconds = 0.5;

/// What `rank` did in `run`, which began at `start`.
Object describe(const Trace &trace, int64_t rank, int64_t run, double start) {
  auto toSeconds = [&](double time) { return (time - start) * 1e-6; };
  std::vector<const TraceSlice *> slices;
  for (const TraceSlice &slice : trace.slices)
    if (slice.rank == rank && slice.run == run)
      slices.push_back(&slice);
  llvm::sort(slices, [](const TraceSlice *a, const TraceSlice *b) {
    return a->begin < b->begin;
  });
  std::vector<std::pair<double, double>> computed;
  Array collectives, overlapped;
  double last = start;
  for (const TraceSlice *slice : slices) {
    last = std::max(last, slice->end);
    if (!slice->id) {
      if (!computed.empty() &&
          slice->begin - computed.back().second < kGapMicroseconds)
        computed.back().second = slice->end;
      else
        computed.emplace_back(slice->begin, slice->end);
      continue;
    }
    auto found =
        trace.lastArrivals.find({slice->rank, slice->track, slice->begin});
    double all = found == trace.lastArrivals.end()
                     ? slice->begin
                     : std::min(found->second, slice->end);
    auto makeTimes = [&](double arrival) {
      return Object{{"id", *slice->id},
                    {"arrival", toSeconds(arrival)},
                    {"start", toSeconds(std::max(arrival, all))},
                    {"end", toSeconds(slice->end)}};
    };
    (slice->waited ? overlapped : collectives)
        .push_back(makeTimes(slice->begin));
    if (slice->waited && *slice->waited > 0)
      collectives.push_back(makeTimes(slice->end - *slice->waited));
  }
  Array compute;
  for (auto [begin, end] : computed)
    compute.push_back(Array{toSeconds(begin), toSeconds(end)});
  return Object{{"rank", rank},
                {"seconds", toSeconds(last)},
                {"compute", std::move(compute)},
                {"collectives", std::move(collectives)},
                {"overlapped", std::move(overlapped)}};
}

} // namespace

llvm::Expected<llvm::json::Value>
tp::parseTrace(StringRef json, const llvm::json::Value &report) {
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(json);
  if (!parsed)
    return parsed.takeError();
  const Object *object = report.getAsObject();
  if (!object)
    return fail("the report isn't an object");
  llvm::Expected<Trace> trace = readTrace(*parsed);
  if (!trace)
    return trace.takeError();
  if (llvm::Error error = check(*trace, *object))
    return std::move(error);
  auto [run, numRuns] = findMedianRun(*trace);
  double start = std::numeric_limits<double>::max();
  for (const TraceSlice &slice : trace->slices)
    if (slice.run == run)
      start = std::min(start, slice.begin);
  Array ranks;
  for (int64_t rank : findFirstRanks(*object))
    if (llvm::any_of(trace->slices, [&, run = run](const TraceSlice &slice) {
          return slice.rank == rank && slice.run == run;
        }))
      ranks.push_back(describe(*trace, rank, run, start));
  if (ranks.empty())
    return fail("it has none of the ranks that stand for their classes");
  return Object{{"run", run}, {"runs", numRuns}, {"ranks", std::move(ranks)}};
}
