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

} // namespace mlir::tp

#endif // TP_ADVICE_PAGE_REPORTPAGE_H
