//===- StagesReader.h - The stages of a plan's pipeline ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_STAGESREADER_H
#define TP_LIB_PLAN_STAGESREADER_H

#include "tp/Plan/PlanFile.h"
#include "tp/Support/FieldReader.h"

namespace mlir::tp::plan {

/// Reads what `pipeline` says of its mesh dimension:
/// `{split: [layers.2], schedule: 1F1B, microbatches: 4}`.
class StagesReader : public FieldReader {
public:
  /// The mesh dimension `name` has `numRanks` ranks.
  StagesReader(PipelineAxis &pipeline, StringRef name, int64_t numRanks)
      : pipeline(pipeline), name(name), numRanks(numRanks) {}

  void read(const YamlValue &value);

private:
  void readSchedule(const YamlValue &value);
  void readSplit(const YamlValue &value);
  /// Finds the number of stages per rank, which the list `split` implies.
  void countStages(const YamlValue &split);
  void readStagesPerRank(const YamlValue &value);
  void readMicrobatches(const YamlValue &value);

  PipelineAxis &pipeline;
  StringRef name;
  int64_t numRanks;
};

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STAGESREADER_H
