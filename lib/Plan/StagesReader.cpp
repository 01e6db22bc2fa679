//===- StagesReader.cpp - The stages of a plan's pipeline -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StagesReader.h"
#include "PlanKeys.h"
#include "tp/Dialect/TP/PipelineSchedule.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

void StagesReader::read(const YamlValue &value) {
  if (!value.isMap())
    return reportValue(value, "a pipeline is a map with the key 'split'");
  Fields fields = readFields(value, "map", getPipelineKeys());
  if (numRanks < 2)
    report(pipeline.loc, "'" + name +
                             "' has one rank, and a pipeline has at least "
                             "two stages");
  if (const YamlValue *schedule = fields["schedule"])
    readSchedule(*schedule);
  if (requiresSeveralStages(pipeline.schedule))
    pipeline.stagesPerRank = 2;
  if (const YamlValue *split = fields["split"])
    readSplit(*split);
  else
    report(value.loc, "key 'split' is missing: the modules that begin the "
                      "stages after the first, or auto");
  for (StringRef key : {"stages_per_rank", "machine"})
    if (fields[key] && fields["split"] && !pipeline.isAuto)
      report(fields.getKeyLoc(key),
             "'" + key +
                 "' needs split: auto, and split is a list of modules; "
                 "remove one of them");
  if (const YamlValue *count = fields["stages_per_rank"])
    readStagesPerRank(*count);
  if (const YamlValue *machine = fields["machine"]) {
    if (!machine->isScalar() || machine->text.empty())
      reportValue(*machine, "machine must be a preset or the path of a "
                            "description");
    else
      pipeline.machine = ModulePattern{machine->text, machine->loc};
  }
  if (const YamlValue *microbatches = fields["microbatches"])
    readMicrobatches(*microbatches);
}

void StagesReader::readSchedule(const YamlValue &value) {
  if (auto kind = findNamed(kPipelineSchedules, value.text)) {
    pipeline.schedule = *kind;
    return;
  }
  SmallVector<StringRef> names = getPipelineScheduleNames();
  report(value.loc,
         "there is no schedule " + value.describe() +
             suggestOr(value.text, names,
                       "; schedules are " + llvm::join(names, ", ")));
}

void StagesReader::readSplit(const YamlValue &value) {
  pipeline.splitLoc = value.loc;
  if (value.isScalar() && value.text == "auto") {
    pipeline.isAuto = true;
    return;
  }
  if (!value.isList())
    return reportValue(value, "split must be a list of modules, or auto");
  for (const YamlValue &item : value.items)
    if (item.isScalar())
      pipeline.split.push_back({item.text, item.loc});
    else
      reportValue(item, "a module is expected");
  if (numRanks >= 2)
    countStages(value);
}

void StagesReader::countStages(const YamlValue &split) {
  auto numStages = static_cast<int64_t>(split.items.size()) + 1;
  if (!allowsSeveralStages(pipeline.schedule)) {
    if (numStages != numRanks)
      report(split.loc, "split must have " + Twine(numRanks - 1) +
                            (numRanks == 2 ? " module" : " modules") +
                            ", as the " + Twine(numRanks) + " ranks of '" +
                            name + "' run a stage each, found " +
                            Twine(numStages - 1));
    return;
  }
  int64_t least = requiresSeveralStages(pipeline.schedule) ? 2 : 1;
  if (numStages % numRanks != 0 || numStages < least * numRanks)
    report(split.loc, "split has " + Twine(numStages - 1) +
                          (numStages == 2 ? " module" : " modules") +
                          ", which make " + Twine(numStages) + " stages; " +
                          stringifyPipelineSchedule(pipeline.schedule) +
                          " needs a multiple of " + Twine(numRanks) +
                          " stages, at least " + Twine(least * numRanks) +
                          ", for the " + Twine(numRanks) + " ranks of '" +
                          name + "'");
  else if (numStages / numRanks > kMaxStagesPerRank)
    report(split.loc, "split makes " + Twine(numStages / numRanks) +
                          " stages per rank, and a rank runs at most " +
                          Twine(kMaxStagesPerRank));
  else
    pipeline.stagesPerRank = numStages / numRanks;
}

void StagesReader::readStagesPerRank(const YamlValue &value) {
  std::optional<int64_t> count = value.getInteger();
  if (!count || *count < 1 || *count > kMaxStagesPerRank)
    return reportValue(value, "stages_per_rank must be an integer from 1 to " +
                                  Twine(kMaxStagesPerRank));
  StringRef schedule = stringifyPipelineSchedule(pipeline.schedule);
  if (*count > 1 && !allowsSeveralStages(pipeline.schedule))
    return report(value.loc, schedule + " allows one stage per rank, found " +
                                 Twine(*count) +
                                 "; use Interleaved1F1B or "
                                 "InterleavedZeroBubble for several");
  if (*count == 1 && requiresSeveralStages(pipeline.schedule))
    return report(value.loc, schedule + " needs at least 2 stages per rank, "
                                        "found 1; 1F1B runs one");
  pipeline.stagesPerRank = *count;
}

void StagesReader::readMicrobatches(const YamlValue &value) {
  std::optional<int64_t> count = value.getInteger();
  if (!count || *count < 1 || *count > kMaxMicrobatches)
    return reportValue(value, "microbatches must be an integer from 1 to " +
                                  Twine(kMaxMicrobatches));
  pipeline.microbatches = *count;
  pipeline.microbatchesLoc = value.loc;
  if (pipeline.stagesPerRank > 1 && numRanks >= 2 &&
      !getRoundSize(*count, numRanks))
    report(value.loc,
           Twine(*count) + " microbatches on " + Twine(numRanks) +
               " ranks can't run in " + Twine(*count / numRanks) +
               " rounds of equal size, which several stages per rank need; use "
               "a multiple of " +
               Twine(numRanks));
}
