//===- ReportPage.h - The report as an HTML page ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_ADVICE_PAGE_REPORTPAGE_H
#define TP_ADVICE_PAGE_REPORTPAGE_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlir::tp {

/// What a page shows besides the report.
struct PageDetails {
  /// What tp-explain says about the same program, or null.
  llvm::json::Value explanation = nullptr;
  /// What ranks did in a run of the program, or null.
  llvm::json::Value measured = nullptr;
  /// What tp-auto-plan has found for the same ranks and machine, or null.
  llvm::json::Value alternatives = nullptr;
  /// What the plan costs on other numbers of ranks, by tp-scale-plan, or null.
  llvm::json::Value scaling = nullptr;
};

/// Prints the page that shows a report (docs/Report.md): one HTML file, which
/// contains the JSON.
void printReportPage(const llvm::json::Value &report,
                     const PageDetails &details, raw_ostream &os);

/// Parses the JSON of tp-explain (docs/Explain.md). Fails unless it explains a
/// program for the mesh of `report`, with as many redistributions of as many
/// bytes.
llvm::Expected<llvm::json::Value>
parseExplanation(StringRef json, const llvm::json::Value &report);

/// Parses a trace of `tp-run --trace` (docs/Runtime.md), and keeps what the
/// first rank of each class of `report` did in the run of median length:
///
///     {"run": 3, "runs": 20, "ranks": [
///       {"rank": 0, "seconds": s, "compute": [[begin, end], …],
///        "collectives": [[id, arrival, start, end], …]}]}
///
/// Times are seconds from the start of the run; from `start` on, all ranks of
/// the group have arrived. Fails if the trace has ranks or collectives that the
/// report doesn't have.
llvm::Expected<llvm::json::Value> parseTrace(StringRef json,
                                             const llvm::json::Value &report);

/// Parses the JSON report of tp-auto-plan (docs/AutoPlan.md). Fails unless its
/// plans are for the machine of the prediction of `report`, and for as many
/// ranks.
llvm::Expected<llvm::json::Value>
parseAlternatives(StringRef json, const llvm::json::Value &report);

/// Parses the JSON report of tp-scale-plan (docs/Prediction.md). Fails unless it
/// predicts the time and the memory of `report` for the mesh and the machine of
/// `report`.
llvm::Expected<llvm::json::Value> parseScaling(StringRef json,
                                               const llvm::json::Value &report);

/// What a page may show besides the report, in the order of the texts that
/// users give: what it is called, and how it is parsed.
struct PageDetail {
  StringLiteral name;
  llvm::Expected<llvm::json::Value> (*parse)(StringRef,
                                             const llvm::json::Value &);
  llvm::json::Value PageDetails::*member;
};
inline constexpr PageDetail kPageDetails[] = {
    {"explanation", parseExplanation, &PageDetails::explanation},
    {"trace", parseTrace, &PageDetails::measured},
    {"alternatives", parseAlternatives, &PageDetails::alternatives},
    {"scaling", parseScaling, &PageDetails::scaling},
};

} // namespace mlir::tp

#endif // TP_ADVICE_PAGE_REPORTPAGE_H
