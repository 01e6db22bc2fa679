//===- PredictionReport.cpp - A prediction as JSON and as a table ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PredictionReport.h"
#include "llvm/Support/Format.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;
using llvm::json::Array;
using llvm::json::Object;

namespace {

/// A module's cost, in compute and in collectives.
struct ModuleCost {
  Cost compute, collectives;
  double getSeconds() const { return compute.seconds + collectives.seconds; }
};

using ModuleCosts = llvm::MapVector<StringRef, ModuleCost>;

ModuleCosts getModules(const ProgramPrediction &program) {
  ModuleCosts modules;
  for (auto &[fqn, cost] : program.byModule)
    modules[fqn].compute += cost;
  for (auto &[fqn, cost] : program.collectivesByModule)
    modules[fqn].collectives += cost;
  return modules;
}

Object toJSON(const ProgramPrediction &program) {
  Array ops, modules;
  for (auto &[name, cost] : program.byOp)
    ops.push_back(Object{{"op", name},
                         {"count", cost.count},
                         {"flops", cost.flops},
                         {"bytes_touched", cost.bytes},
                         {"seconds", cost.seconds}});
  for (auto &[fqn, cost] : getModules(program))
    modules.push_back(Object{{"fqn", fqn},
                             {"seconds", cost.getSeconds()},
                             {"compute_seconds", cost.compute.seconds},
                             {"collective_seconds", cost.collectives.seconds},
                             {"flops", cost.compute.flops},
                             {"bytes_touched", cost.compute.bytes},
                             {"bytes_received", cost.collectives.bytes}});
  func::FuncOp function = program.program;
  return Object{{"function", function.getName()},
                {"ranks", Array(ArrayRef<int64_t>(program.ranks))},
                {"ops", std::move(ops)},
                {"modules", std::move(modules)}};
}

} // namespace

Object PredictionReport::toJSON() const {
  SmallVector<const ProgramPrediction *> programOf(prediction.ranks.size());
  Array programs, ranks, collectives;
  for (const ProgramPrediction &program : prediction.programs) {
    programs.push_back(::toJSON(program));
    for (int64_t rank : program.ranks)
      programOf[rank] = &program;
  }
  for (auto [rank, predicted] : llvm::enumerate(prediction.ranks)) {
    Object object{{"rank", static_cast<int64_t>(rank)},
                  {"seconds", predicted.getTotal()},
                  {"compute_seconds", predicted.compute},
                  {"collective_seconds", predicted.collectives},
                  {"waiting_seconds", predicted.waiting},
                  {"flops", programOf[rank]->compute.flops},
                  {"bytes_touched", programOf[rank]->compute.bytes},
                  {"bytes_received", receivedBytes[rank]}};
    if (!memory.empty())
      object["memory"] = Object{{"parameters", memory[rank].parameters},
                                {"inputs", memory[rank].inputs},
                                {"outputs", memory[rank].outputs},
                                {"arena", memory[rank].arena},
                                {"total", memory[rank].getTotal()}};
    ranks.push_back(std::move(object));
  }
  for (auto [id, seconds] : llvm::enumerate(prediction.collectives))
    collectives.push_back(
        Object{{"id", static_cast<int64_t>(id)},
               {"seconds", *llvm::max_element(seconds)},
               {"seconds_by_rank", Array(ArrayRef<double>(seconds))}});
  return Object{{"machine", tp::toJSON(machine)},
                {"seconds", prediction.getSeconds()},
                {"ranks", std::move(ranks)},
                {"collectives", std::move(collectives)},
                {"programs", std::move(programs)}};
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

/// "12.3 ms", "4.56 GB": three digits, in the unit for which one to three of
/// them are before the decimal point.
static std::string formatScaled(double value, StringRef unit,
                                ArrayRef<const char *> prefixes,
                                double smallest) {
  double scale = smallest;
  size_t i = 0;
  while (value >= scale * 999.5 && i + 1 < prefixes.size()) {
    scale *= 1000;
    ++i;
  }
  double scaled = value / scale;
  const char *precision = scaled >= 100  ? "%.0f"
                          : scaled >= 10 ? "%.1f"
                          : scaled > 0   ? "%.2f"
                                         : "%.0f";
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format(precision, scaled) << ' ' << prefixes[i] << unit;
  return text;
}

static std::string formatSeconds(double seconds) {
  return formatScaled(seconds, "s", {"n", "u", "m", ""}, 1e-9);
}
static std::string formatBytes(double bytes) {
  return formatScaled(bytes, "B", {"", "k", "M", "G", "T"}, 1);
}
static std::string formatFlops(double flops) {
  return formatScaled(flops, "FLOP", {"", "k", "M", "G", "T", "P"}, 1);
}

/// `fqn` with a "*" for each index of a repeated layer.
static std::string getPattern(StringRef fqn) {
  SmallVector<StringRef> parts;
  fqn.split(parts, '.');
  for (StringRef &part : parts)
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      part = "*";
  return llvm::join(parts, ".");
}

namespace {

struct Row {
  std::string name;
  int64_t count = 0;
  ModuleCost cost;
};

void printRows(raw_ostream &os, StringRef title, std::vector<Row> rows) {
  llvm::stable_sort(rows, [](const Row &a, const Row &b) {
    return a.cost.getSeconds() > b.cost.getSeconds();
  });
  double total = 0;
  for (const Row &row : rows)
    total += row.cost.getSeconds();
  os << llvm::formatv("{0,9}  {1,6}  {2,9}  {3,11}  {4,10}  {5,8}  {6,8}  "
                      "{7,5}  {8}\n",
                      "time", "share", "compute", "collectives", "FLOPs",
                      "touched", "received", "count", title);
  for (const Row &row : rows)
    os << llvm::formatv(
        "{0,9}  {1,6:P1}  {2,9}  {3,11}  {4,10}  {5,8}  {6,8}  {7,5}  {8}\n",
        formatSeconds(row.cost.getSeconds()),
        total > 0 ? row.cost.getSeconds() / total : 0.0,
        formatSeconds(row.cost.compute.seconds),
        formatSeconds(row.cost.collectives.seconds),
        formatFlops(row.cost.compute.flops),
        formatBytes(row.cost.compute.bytes),
        formatBytes(row.cost.collectives.bytes), row.count, row.name);
}

} // namespace

void PredictionReport::print(raw_ostream &os) const {
  size_t slowest = 0;
  for (size_t rank = 0; rank < prediction.ranks.size(); ++rank)
    if (prediction.ranks[rank].getTotal() >
        prediction.ranks[slowest].getTotal())
      slowest = rank;
  const RankPrediction &rank = prediction.ranks[slowest];
  os << "predicted for " << machine.name << ": "
     << formatSeconds(prediction.getSeconds()) << " (the slowest rank, "
     << slowest << " of " << prediction.ranks.size() << "): compute "
     << formatSeconds(rank.compute) << ", collectives "
     << formatSeconds(rank.collectives) << ", waiting "
     << formatSeconds(rank.waiting) << '\n';
  if (!memory.empty()) {
    const RankMemory *most =
        llvm::max_element(memory, [](const RankMemory &a, const RankMemory &b) {
          return a.getTotal() < b.getTotal();
        });
    os << "memory per rank: " << most->getTotal() << " bytes (parameters "
       << most->parameters << ", inputs " << most->inputs << ", outputs "
       << most->outputs << ", arena " << most->arena << ") of "
       << formatBytes(machine.memoryCapacity) << '\n';
  }
  const ProgramPrediction *program = llvm::find_if(
      prediction.programs, [&](const ProgramPrediction &candidate) {
        return llvm::is_contained(candidate.ranks, slowest);
      });
  std::map<std::string, Row> byPattern;
  for (auto &[fqn, cost] : getModules(*program)) {
    Row &row = byPattern[getPattern(fqn)];
    row.name = fqn.empty() ? "(no module)" : getPattern(fqn);
    ++row.count;
    row.cost.compute += cost.compute;
    row.cost.collectives += cost.collectives;
  }
  std::vector<Row> modules, ops;
  for (auto &[pattern, row] : byPattern)
    modules.push_back(row);
  for (auto &[name, cost] : program->byOp)
    ops.push_back({name.str(), cost.count, {cost, Cost()}});
  os << '\n';
  printRows(os, "module", std::move(modules));
  os << '\n';
  printRows(os, "op", std::move(ops));
}
