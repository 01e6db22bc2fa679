//===- Profile.cpp - Profiles of a run ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Profile.h"

#include "profile/RecordedWork.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

using namespace tprt;

namespace {

using Key = std::array<std::string, 3>; // fqn, op, kind

/// The time when the last rank of a group arrived at a collective, by run, id,
/// and the group's first rank.
using Arrivals = std::map<std::array<int64_t, 3>, int64_t>;

} // namespace

static std::array<int64_t, 3> getCall(const Manifest &manifest, int64_t rank,
                                      const Slice &slice) {
  return {slice.run, slice.index,
          manifest.collectives[slice.index].getGroup(rank)->front()};
}

static Arrivals findArrivals(const Manifest &manifest,
                             const Recording &recording) {
  Arrivals arrivals;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
    for (const Slice &slice : recording.ranks[rank])
      if (slice.kind == Slice::Kind::Collective) {
        int64_t &last = arrivals[getCall(manifest, rank, slice)];
        last = std::max(last, slice.begin);
      }
  return arrivals;
}

static void addLimit(ProfileRow &row, std::optional<double> limit) {
  if (limit)
    row.limit = row.limit.value_or(0) + *limit;
}

static void sortByTime(std::vector<ProfileRow> &rows) {
  std::sort(rows.begin(), rows.end(),
            [](const ProfileRow &a, const ProfileRow &b) {
              return std::tie(b.seconds, a.fqn, a.op, a.kind) <
                     std::tie(a.seconds, b.fqn, b.op, b.kind);
            });
}

Profile::Profile(const Manifest &manifest, const Recording &recording,
                 const Machine *machine)
    : numRuns(recording.numRuns) {
  checkRecording(manifest, recording);
  Arrivals arrivals = findArrivals(manifest, recording);
  std::map<Key, ProfileRow> byKey;
  int64_t numRanks = 0;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    numRanks += !recording.ranks[rank].empty();
    for (const Slice &slice : recording.ranks[rank]) {
      double time = slice.getDuration() * 1e-9;
      if (slice.kind == Slice::Kind::Run) {
        seconds += time;
        continue;
      }
      RecordedWork work = getWork(manifest, slice);
      ProfileRow &row = byKey[{work.fqn, work.op, work.kind}];
      row.fqn = work.fqn;
      row.op = work.op;
      row.kind = work.kind;
      row.calls += 1;
      row.seconds += time;
      row.flops += work.flops;
      row.bytes += work.bytes;
      if (slice.kind == Slice::Kind::Op) {
        if (machine)
          addLimit(row,
                   machine->getComputeLimit(work.flops, work.bytes,
                                            work.dtype.value_or(Dtype::F32),
                                            manifest.worldSize));
        continue;
      }
      int64_t arrived = arrivals.at(getCall(manifest, rank, slice));
      int64_t begin = slice.waited.value_or(slice.begin);
      row.waiting +=
          std::max<int64_t>(0, std::min(arrived, slice.end) - begin) * 1e-9;
      const Collective &collective = manifest.collectives[slice.index];
      if (machine)
        addLimit(row,
                 machine->getCollectiveLimit(collective.kind, work.bytes,
                                             collective.groups.front().size()));
    }
  }
  double count = std::max<int64_t>(1, numRuns * numRanks);
  seconds /= count;
  for (auto &[key, row] : byKey) {
    for (double *sum :
         {&row.calls, &row.seconds, &row.waiting, &row.flops, &row.bytes})
      *sum /= count;
    if (row.limit)
      *row.limit /= count;
    rows.push_back(std::move(row));
  }
  sortByTime(rows);
}

/// "layers.3.wq" -> "layers.*.wq".
static std::string hideNumbers(const std::string &fqn) {
  std::string text;
  for (size_t begin = 0; begin <= fqn.size();) {
    size_t end = std::min(fqn.find('.', begin), fqn.size());
    std::string part = fqn.substr(begin, end - begin);
    bool isNumber = !part.empty() &&
                    part.find_first_not_of("0123456789") == std::string::npos;
    text += (begin ? "." : "") + (isNumber ? std::string("*") : part);
    begin = end + 1;
  }
  return text;
}

static std::vector<ProfileRow> joinLayers(const std::vector<ProfileRow> &rows) {
  std::vector<ProfileRow> joined;
  std::map<Key, size_t> known;
  for (const ProfileRow &row : rows) {
    std::string fqn = hideNumbers(row.fqn);
    auto [it, isNew] =
        known.try_emplace({fqn, row.op, row.kind}, joined.size());
    if (isNew) {
      joined.push_back(row);
      joined.back().fqn = fqn;
      continue;
    }
    ProfileRow &sum = joined[it->second];
    sum.calls += row.calls;
    sum.seconds += row.seconds;
    sum.waiting += row.waiting;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
    addLimit(sum, row.limit);
  }
  sortByTime(joined);
  return joined;
}

template <typename... Args>
static std::string format(const char *pattern, Args... args) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, args...);
  return text;
}

/// "12.3 us", three digits.
static std::string formatSeconds(double seconds) {
  for (auto [unit, scale] : {std::pair("us", 1e-6), std::pair("ms", 1e-3)})
    if (seconds < 999.5 * scale)
      return format("%.3g %s", seconds / scale, unit);
  return format("%.3g s", seconds);
}

/// `amount` per second in units of 1e9; "" if it is zero.
static std::string formatRate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? format("%.3g", amount / seconds * 1e-9)
                                   : "";
}

std::string Profile::toTable() const {
  std::vector<std::vector<std::string>> lines{
      {"time", "share", "waiting", "calls", "GFLOP/s", "GB/s", "of limit",
       "kind", "module: op"}};
  bool hasLimits = false;
  double rest = seconds;
  for (const ProfileRow &row : joinLayers(rows)) {
    rest -= row.seconds;
    hasLimits |= row.limit.has_value();
    // Reading another rank's data only begins when that rank has arrived.
    double active = row.seconds - row.waiting;
    std::string name = row.fqn;
    if (!row.op.empty())
      name += (name.empty() ? "" : ": ") + row.op;
    lines.push_back(
        {formatSeconds(row.seconds),
         format("%.1f%%", seconds > 0 ? row.seconds / seconds * 100 : 0.0),
         row.waiting > 0 ? formatSeconds(row.waiting) : "",
         format("%.6g", row.calls), formatRate(row.flops, active),
         formatRate(row.bytes, active),
         row.limit && active > 0 ? format("%.0f%%", *row.limit / active * 100)
                                 : "",
         row.kind, name});
  }
  lines.push_back({formatSeconds(std::max(rest, 0.0)),
                   format("%.1f%%", seconds > 0 ? rest / seconds * 100 : 0.0),
                   "", "", "", "", "", "", "(between them)"});
  std::vector<size_t> widths(lines.front().size());
  for (const auto &line : lines)
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  std::string text = "per run and rank, mean of " + std::to_string(numRuns) +
                     " runs: " + formatSeconds(seconds) + "\n";
  constexpr size_t numColumns = 9, limitColumn = 6, firstLeft = 7;
  for (const auto &line : lines) {
    std::string row;
    for (size_t i = 0; i < numColumns; ++i) {
      if (i == limitColumn && !hasLimits)
        continue;
      std::string padding(widths[i] - line[i].size(), ' ');
      row += (row.empty() ? "" : "  ") +
             (i < firstLeft ? padding + line[i] : line[i] + padding);
    }
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}
