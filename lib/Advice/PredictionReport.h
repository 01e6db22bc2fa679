//===- PredictionReport.h - A prediction as JSON and as a table -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_PREDICTIONREPORT_H
#define TP_LIB_ADVICE_PREDICTIONREPORT_H

#include "tp/Dialect/TP/ArenaUse.h"
#include "tp/Sharding/Cost/CostModel.h"

namespace mlir::tp {

/// One rank's memory in bytes, all of it allocated before a run.
struct RankMemory {
  int64_t parameters = 0, inputs = 0, outputs = 0;
  /// Intermediate values, buffers of collectives among them.
  int64_t arena = 0;

  int64_t getTotal() const { return parameters + inputs + outputs + arena; }
};

/// A report's data about a predicted run.
struct PredictionReport {
  const Machine &machine;
  Prediction prediction;
  /// The classes of the report, which are at least as fine as the prediction's.
  const RankClasses &classes;
  /// By class; empty if the size of the arena isn't known.
  SmallVector<RankMemory> memory;
  /// What lives in the largest arena over time, if it is known.
  std::optional<ArenaUse> arenaUse;
  /// The bytes that a rank of each class receives in collectives.
  SmallVector<int64_t> receivedBytes;

  /// The member `prediction` of docs/Report.md.
  llvm::json::Object toJSON() const;
  /// The same as a table for users: modules by cost, then ops, of the slowest
  /// rank.
  void print(raw_ostream &os) const;

private:
  /// The program that the ranks of a class run.
  const ProgramPrediction &getProgram(unsigned index) const;
};

} // namespace mlir::tp

#endif // TP_LIB_ADVICE_PREDICTIONREPORT_H
