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

Object toJSON(const ProgramPrediction &program, ArrayRef<int64_t> classes) {
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
                {"classes", Array(classes)},
                {"ops", std::move(ops)},
                {"modules", std::move(modules)}};
}

Array toJSON(ArrayRef<CollectiveTimes> timeline) {
  Array result;
  for (const CollectiveTimes &times : timeline)
    result.push_back(Object{{"id", static_cast<int64_t>(times.id)},
                            {"arrival", times.arrival},
                            {"start", times.start},
                            {"end", times.end}});
  return result;
}

Object toJSON(const ArenaUse &use) {
  Array times, values;
  for (const ArenaUse::Time &time : use.times)
    times.push_back(
        Object{{"op", time.op}, {"bytes", time.bytes}, {"fqn", time.fqn}});
  for (const ArenaUse::Value &value : use.values)
    values.push_back(Object{{"bytes", value.bytes},
                            {"fqn", value.fqn},
                            {"op", value.op},
                            {"first", value.first},
                            {"last", value.last}});
  return Object{
      {"ops", use.numOps},
      {"times", std::move(times)},
      {"peak", Object{{"op", use.peak}, {"values", std::move(values)}}}};
}

} // namespace

const ProgramPrediction &PredictionReport::getProgram(unsigned index) const {
  return *llvm::find_if(
      prediction.programs, [&](const ProgramPrediction &program) {
        return llvm::is_contained(program.ranks, classes.getFirst(index));
      });
}

Object PredictionReport::toJSON() const {
  DenseMap<const ProgramPrediction *, SmallVector<int64_t>> classesOf;
  Array programs, byClass, collectives;
  for (size_t index = 0; index < classes.size(); ++index) {
    int64_t rank = classes.getFirst(index);
    const RankPrediction &predicted = prediction.ofRank(rank);
    const ProgramPrediction &program = getProgram(index);
    classesOf[&program].push_back(index);
    Object object{{"seconds", predicted.getTotal()},
                  {"compute_seconds", predicted.compute},
                  {"collective_seconds", predicted.collectives},
                  {"waiting_seconds", predicted.waiting},
                  {"flops", program.compute.flops},
                  {"bytes_touched", program.compute.bytes},
                  {"bytes_received", receivedBytes[index]}};
    if (!memory.empty())
      object["memory"] = Object{{"parameters", memory[index].parameters},
                                {"inputs", memory[index].inputs},
                                {"outputs", memory[index].outputs},
                                {"arena", memory[index].arena},
                                {"total", memory[index].getTotal()}};
    object["timeline"] = ::toJSON(prediction.getTimeline(rank));
    object["overlapped"] = ::toJSON(prediction.getOverlapped(rank));
    byClass.push_back(std::move(object));
  }
  for (const ProgramPrediction &program : prediction.programs)
    programs.push_back(::toJSON(program, classesOf[&program]));
  for (auto [id, ofCollective] : llvm::enumerate(prediction.collectives)) {
    Array seconds;
    for (size_t index = 0; index < classes.size(); ++index)
      seconds.push_back(
          ofCollective[prediction.classes.getClass(classes.getFirst(index))]);
    collectives.push_back(Object{{"id", static_cast<int64_t>(id)},
                                 {"seconds", *llvm::max_element(ofCollective)},
                                 {"seconds_by_class", std::move(seconds)}});
  }
  Object result{{"machine", tp::toJSON(machine)},
                {"seconds", prediction.getSeconds()},
                {"by_class", std::move(byClass)},
                {"collectives", std::move(collectives)},
                {"programs", std::move(programs)}};
  if (arenaUse)
    result["arena"] = ::toJSON(*arenaUse);
  return result;
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
  auto ofClass = [&](size_t index) -> const RankPrediction & {
    return prediction.ofRank(classes.getFirst(index));
  };
  for (size_t index = 0; index < classes.size(); ++index)
    if (ofClass(index).getTotal() > ofClass(slowest).getTotal())
      slowest = index;
  const RankPrediction &rank = ofClass(slowest);
  os << "predicted for " << machine.name << ": "
     << formatSeconds(prediction.getSeconds()) << " (the slowest rank, "
     << classes.getFirst(slowest) << " of " << classes.getNumRanks()
     << "): compute " << formatSeconds(rank.compute) << ", collectives "
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
  const ProgramPrediction &program = getProgram(slowest);
  std::map<std::string, Row> byPattern;
  for (auto &[fqn, cost] : getModules(program)) {
    Row &row = byPattern[getPattern(fqn)];
    row.name = fqn.empty() ? "(no module)" : getPattern(fqn);
    ++row.count;
    row.cost.compute += cost.compute;
    row.cost.collectives += cost.collectives;
  }
  std::vector<Row> modules, ops;
  for (auto &[pattern, row] : byPattern)
    modules.push_back(row);
  for (auto &[name, cost] : program.byOp)
    ops.push_back({name.str(), cost.count, {cost, Cost()}});
  os << '\n';
  printRows(os, "module", std::move(modules));
  os << '\n';
  printRows(os, "op", std::move(ops));
}
