//===- Finding.cpp - Findings of lint -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Plan/Finding.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

std::string plan::printType(RankedTensorType type) {
  std::string text;
  for (int64_t size : type.getShape())
    text += std::to_string(size) + "x";
  llvm::raw_string_ostream(text) << type.getElementType();
  return text;
}

std::string plan::printBytes(int64_t bytes) {
  std::string exact = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  constexpr const char *kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return exact;
  double scaled = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; scaled >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    scaled /= 1024;
  char text[32];
  snprintf(text, sizeof text, "%.4g %s", scaled, kUnits[unit]);
  return std::string(text) + " (" + exact + ")";
}

std::string plan::describeModule(StringRef fqn) {
  return fqn.empty() ? "the root module" : "'" + fqn.str() + "'";
}

LogicalResult plan::emitFindings(ArrayRef<Finding> findings, bool strict) {
  llvm::MapVector<std::pair<StringRef, Attribute>, SmallVector<const Finding *>>
      byPlace;
  for (const Finding &finding : findings)
    byPlace[{finding.check, finding.loc}].push_back(&finding);
  for (auto &[place, same] : byPlace) {
    const Finding &first = *same.front();
    InFlightDiagnostic diagnostic =
        strict ? emitError(first.loc) : emitWarning(first.loc);
    diagnostic << first.message << " [" << first.check << "]";
    if (!first.cost.empty())
      diagnostic.attachNote(first.loc) << "cost: " << first.cost;
    if (!first.edit.empty())
      diagnostic.attachNote(first.loc) << "fix: " << first.edit;
    if (same.size() > 1)
      diagnostic.attachNote(first.loc)
          << "the same holds in " << same.size() - 1 << " more place"
          << (same.size() == 2 ? "" : "s");
  }
  return success(!strict || findings.empty());
}
