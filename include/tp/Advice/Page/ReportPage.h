//===- ReportPage.h - The report as an HTML page ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_ADVICE_PAGE_REPORTPAGE_H
#define TP_ADVICE_PAGE_REPORTPAGE_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlir::tp {

/// Prints the page that shows a report (docs/Report.md): one HTML file, which
/// contains the JSON. `explanation` is what tp-explain says about the same
/// program, or null.
void printReportPage(const llvm::json::Value &report,
                     const llvm::json::Value &explanation, raw_ostream &os);

/// Parses the JSON of tp-explain (docs/Explain.md). Fails unless it explains a
/// program for the mesh of `report`, with as many redistributions of as many
/// bytes.
llvm::Expected<llvm::json::Value>
parseExplanation(StringRef json, const llvm::json::Value &report);

} // namespace mlir::tp

#endif // TP_ADVICE_PAGE_REPORTPAGE_H
