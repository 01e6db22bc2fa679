//===- Report.cpp - Descriptions of programs and of runs ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Report.h"

#include "cpu/Gemm.h"
#include "cuda/DynamicLibrary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

using namespace tprt;
using json = nlohmann::ordered_json;

std::string_view tprt::getVersion() { return TPRT_VERSION; }

static std::string formatNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

/// "  ids  2x64xi64  Shard(0)" for each tensor, columns aligned.
static std::string listTensors(const char *title,
                               const std::vector<TensorInfo> &tensors) {
  std::string text = title;
  text += " (" + std::to_string(tensors.size()) + "):\n";
  size_t nameWidth = 0, typeWidth = 0;
  for (const TensorInfo &info : tensors) {
    nameWidth = std::max(nameWidth, info.name.size());
    typeWidth = std::max(typeWidth, info.getTypeString().size());
  }
  for (const TensorInfo &info : tensors) {
    std::string type = info.getTypeString();
    text += "  " + info.name + std::string(nameWidth - info.name.size(), ' ') +
            "  " + type;
    std::string separator(typeWidth - type.size() + 2, ' ');
    for (const std::string &placement : info.placements) {
      text += separator + placement;
      separator = ", ";
    }
    if (!info.symbolicShape.empty()) {
      text += std::exchange(separator, ", ") + "sizes ";
      for (size_t d = 0; d < info.symbolicShape.size(); ++d)
        text += (d ? " x " : "") + info.symbolicShape[d].text;
    }
    if (info.isUpdated)
      text += std::exchange(separator, ", ") + "updated";
    if (info.init)
      text += separator + "begins as " + formatNumber(*info.init);
    text += "\n";
  }
  return text;
}

/// "3x4xf32 | 2x4xf32": the types that occur, in the order of ranks.
static std::string listTypes(Dtype dtype, const std::vector<Shape> &shapes) {
  std::vector<std::string> types;
  for (const Shape &shape : shapes)
    types.push_back(typeString(dtype, shape));
  std::string text;
  for (size_t i = 0; i < types.size(); ++i)
    if (auto end = types.begin() + i;
        std::find(types.begin(), end, *end) == end)
      text += (i ? " | " : "") + types[i];
  return text;
}

/// ", CUDA sm_80, sm_90"; nothing for a program for the host.
static std::string listArchitectures(const Manifest &manifest) {
  std::string text = manifest.isForCuda ? ", CUDA" : "";
  for (size_t i = 0; i < manifest.architectures.size(); ++i)
    text += (i ? ", sm_" : " sm_") + std::to_string(manifest.architectures[i]);
  return text;
}

/// A line for each of the program's collectives.
static std::string listCollectives(const Manifest &manifest,
                                   const Program &program) {
  const auto &[first, count] = program.collectives;
  std::string text = "collectives (" + std::to_string(count) + "):\n";
  for (int64_t id = first; id < first + count; ++id) {
    const Collective &collective = manifest.collectives[id];
    auto [least, most] = std::minmax_element(collective.bytesByRank.begin(),
                                             collective.bytesByRank.end());
    text += "  " + std::to_string(id - first) + "  " +
            std::string(toString(collective.kind)) + "  " +
            listTypes(collective.dtype, collective.operandShapes) + " -> " +
            listTypes(collective.dtype, collective.resultShapes) + "  " +
            (*most == *least ? "" : std::to_string(*least) + " to ") +
            std::to_string(*most) + " bytes per rank";
    if (!collective.fqn.empty())
      text += "  " + collective.fqn;
    if (!collective.reason.empty())
      text += "  (" + collective.reason + ")";
    text += "\n";
  }
  return text;
}

/// Which parameters a program doesn't use; nothing if it uses all of them.
static std::string listUnused(const Manifest &manifest,
                              const Program &program) {
  std::set<int64_t> used(program.parameters.begin(), program.parameters.end());
  std::vector<std::string> unused;
  for (size_t i = 0; i < manifest.parameters.size(); ++i)
    if (!used.contains(i))
      unused.push_back(manifest.parameters[i].name);
  return unused.empty() ? ""
                        : "parameters: all but " + quotedList(unused, 8) + "\n";
}

std::string tprt::describe(const Manifest &manifest) {
  std::string text =
      "producer: " + manifest.producer + "\ntarget: " + manifest.triple +
      listArchitectures(manifest) + "\nmesh: " + manifest.meshName + " (";
  for (size_t i = 0; i < manifest.axes.size(); ++i)
    text += (i ? ", " : "") + manifest.axes[i].name + " = " +
            std::to_string(manifest.axes[i].size);
  text += "), " + std::to_string(manifest.worldSize) + " ranks\n";
  text += listTensors("parameters", manifest.parameters);
  for (const Program &program : manifest.programs) {
    text += "program: " + program.name + "\n";
    text += "arena: " + std::to_string(program.arenaBytes) + " bytes\n";
    text += listUnused(manifest, program);
    text += listTensors("inputs", program.inputs);
    text += listTensors("outputs", program.outputs);
    text += listCollectives(manifest, program);
  }
  return text;
}

Timing tprt::summarize(const std::vector<double> &seconds) {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  int64_t count = sorted.size();
  auto getPercentile = [&](int64_t percent) {
    return sorted[std::max<int64_t>((count * percent + 99) / 100 - 1, 0)];
  };
  Timing timing{.numRuns = count,
                .min = sorted.front(),
                .median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
                .p90 = getPercentile(90),
                .p99 = getPercentile(99),
                .max = sorted.back(),
                .note = ""};
  constexpr int64_t fewestRuns = 10;
  constexpr double largestSpread = 1.1; // of undisturbed runs
  if (count < fewestRuns)
    timing.note = "fewer than " + std::to_string(fewestRuns) +
                  " runs: percentiles say little";
  else if (timing.p90 > largestSpread * timing.median)
    timing.note =
        "one run in ten takes " +
        formatNumber(std::round(timing.p90 / timing.median * 100 - 100)) +
        "% longer than the median: something else has had the cores, don't "
        "trust these times";
  return timing;
}

std::string tprt::describe(const Timing &timing) {
  auto inMilliseconds = [](double seconds) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.4g ms", seconds * 1e3);
    return std::string(text);
  };
  std::string text = std::to_string(timing.numRuns) + " runs: median " +
                     inMilliseconds(timing.median) + ", min " +
                     inMilliseconds(timing.min) + ", p90 " +
                     inMilliseconds(timing.p90) + ", p99 " +
                     inMilliseconds(timing.p99) + "\n";
  return timing.note.empty() ? text : text + "note: " + timing.note + "\n";
}

static json toJson(const std::vector<double> &seconds) {
  Timing timing = summarize(seconds);
  json object = {{"median", timing.median}, {"min", timing.min},
                 {"p90", timing.p90},       {"p99", timing.p99},
                 {"max", timing.max},       {"runs", seconds}};
  if (!timing.note.empty())
    object["note"] = timing.note;
  return object;
}

static json toJson(const GemmChoices &choices) {
  json products = json::array();
  for (const GemmChoice &choice : choices.products) {
    json seconds = json::object();
    for (auto [library, time] : choice.seconds)
      seconds[std::string(toString(library))] = time;
    products.push_back({{"m", choice.product.m},
                        {"n", choice.product.n},
                        {"k", choice.product.k},
                        {"a", choice.product.isAByColumns ? "columns" : "rows"},
                        {"b", choice.product.isBByColumns ? "columns" : "rows"},
                        {"weight", choice.product.isWeight},
                        {"library", toString(choice.library)},
                        {"seconds", std::move(seconds)}});
  }
  json object = {{"instruction_set", choices.instructionSet},
                 {"file", choices.file},
                 {"products", std::move(products)}};
  if (choices.library)
    object["library"] = toString(*choices.library);
  if (!choices.note.empty())
    object["note"] = choices.note;
  return object;
}

/// The library that computes a row's products of f32; empty if it has none.
static std::string_view getLibrary(const ProfileRow &row,
                                   std::span<const OpInfo> ops,
                                   const GemmChoices &choices) {
  for (const OpInfo &op : ops)
    if (op.product && op.dtype == Dtype::F32 && op.fqn == row.fqn &&
        op.op == row.op && op.kind == row.kind)
      return toString(choices.get(getProduct(*op.product, op.isWeight)));
  return {};
}

static json toJson(const Profile &profile, const Session &session,
                   const Program &program) {
  const Manifest &manifest = session.getManifest();
  auto ops =
      std::span(manifest.ops).subspan(program.ops.first, program.ops.count);
  json rows = json::array();
  for (const ProfileRow &row : profile.rows) {
    std::string_view library = getLibrary(row, ops, session.getGemmChoices());
    json object = {{"fqn", row.fqn},         {"op", row.op},
                   {"kind", row.kind},       {"calls", row.calls},
                   {"seconds", row.seconds}, {"waiting", row.waiting},
                   {"flops", row.flops},     {"bytes", row.bytes}};
    if (!library.empty() && !manifest.isForCuda)
      object["library"] = library;
    if (row.limit)
      object["limit"] = *row.limit;
    rows.push_back(std::move(object));
  }
  return {{"runs", profile.numRuns},
          {"seconds", profile.seconds},
          {"rows", std::move(rows)}};
}

static json toJson(const GemmUses &uses) {
  json products = json::array();
  for (const GemmUse &use : uses.products) {
    json product = {{"form", use.form},
                    {"library", use.library},
                    {"epilogue", use.epilogue},
                    {"calls", use.calls}};
    if (use.numAlgorithms > 0) {
      product["algorithm"] = use.algorithm;
      product["algorithms"] = use.numAlgorithms;
    }
    if (use.seconds > 0)
      product["seconds"] = use.seconds;
    if (use.firstSeconds > 0)
      product["first_seconds"] = use.firstSeconds;
    products.push_back(std::move(product));
  }
  json object = {{"file", uses.file}, {"products", std::move(products)}};
  if (!uses.note.empty())
    object["note"] = uses.note;
  return object;
}

static json toJson(const std::vector<AttentionUse> &uses) {
  json list = json::array();
  for (const AttentionUse &use : uses)
    list.push_back({{"op", use.op},
                    {"form", use.form},
                    {"library", use.library},
                    {"reason", use.reason},
                    {"calls", use.calls}});
  return list;
}

std::string tprt::describe(const std::vector<AttentionUse> &uses) {
  std::string text;
  for (const AttentionUse &use : uses)
    text +=
        use.op + " by " +
        (use.library == "own" ? "the runtime's own kernel (" + use.reason + ")"
                              : use.library) +
        ", " + std::to_string(use.calls) + " calls: " + use.form + "\n";
  return text;
}

static int64_t sumBlocks(const std::vector<TensorInfo> &tensors, int64_t rank) {
  int64_t bytes = 0;
  for (const TensorInfo &info : tensors)
    bytes += info.getShardBytes(rank);
  return bytes;
}

std::string tprt::makeRunReport(const std::string &artifactPath,
                                const Session &session, const RunResult &result,
                                const RunOptions &options,
                                const Profile *profile) {
  const Manifest &manifest = session.getManifest();
  const Program &program = *result.choice.program;
  const auto &[firstId, numIds] = program.collectives;
  std::vector<int64_t> weightBytes = session.getWeightBytesByRank();
  json ranks = json::array();
  CollectiveCount total;
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    json collectives = json::array();
    CollectiveCount rankTotal;
    for (int64_t id = firstId; id < firstId + numIds; ++id) {
      const Collective &collective = manifest.collectives[id];
      const CollectiveCount &count = result.counts[rank][id];
      collectives.push_back({{"id", id - firstId},
                             {"kind", toString(collective.kind)},
                             {"fqn", collective.fqn},
                             {"calls", count.calls},
                             {"bytes", count.bytes}});
      rankTotal.calls += count.calls;
      rankTotal.bytes += count.bytes;
    }
    ranks.push_back({{"rank", rank},
                     {"weight_bytes", weightBytes[rank]},
                     {"input_bytes", sumBlocks(program.inputs, rank)},
                     {"output_bytes", sumBlocks(program.outputs, rank)},
                     {"calls", rankTotal.calls},
                     {"bytes", rankTotal.bytes},
                     {"collectives", collectives}});
    total.calls += rankTotal.calls;
    total.bytes += rankTotal.bytes;
  }
  json report = {
      {"schema", 1},
      {"tool", "tp-run " + std::string(getVersion())},
      {"artifact", artifactPath},
      {"program", program.name},
      {"backend", session.getBackend()},
      {"device", manifest.isForCuda ? "cuda" : "cpu"},
      {"world_size", manifest.worldSize},
      {"warmup", options.warmup},
      {"repeat", options.repeat},
      {"seconds", toJson(result.seconds)},
      {"arena_bytes", manifest.getArenaBytes()},
      {"copied_weight_bytes", session.getCopiedWeightBytes()},
      {"packed_weight_bytes", session.getPackedWeightBytes()},
      {"total", {{"calls", total.calls}, {"bytes", total.bytes}}},
      {"ranks", ranks},
  };
  if (!session.getCommunication().empty())
    report["communication"] = session.getCommunication();
  if (!result.hostSeconds.empty())
    report["host_seconds"] = toJson(result.hostSeconds);
  if (manifest.isForCuda) {
    report["libraries"] = cuda::getLoadedLibraries();
    report["attention"] = toJson(session.getAttentionUses());
    report["gemm"] = toJson(session.getGemmUses());
  }
  if (!manifest.isForCuda)
    report["gemm"] = toJson(session.getGemmChoices());
  if (profile)
    report["profile"] = toJson(*profile, session, program);
  return report.dump(2) + "\n";
}
