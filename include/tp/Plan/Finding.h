//===- Finding.h - Findings of lint -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A valid plan may still not be what its author meant, or cost more than
// necessary. A finding says what the problem is, where it is, what it costs,
// and which edit fixes it.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_FINDING_H
#define TP_PLAN_FINDING_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include <string>

namespace mlir::tp::plan {

struct Finding {
  /// The name of the check, such as "uneven". An entry with the same finding
  /// for many modules gets one warning.
  StringRef check;
  FileLineColLoc loc;
  std::string message;
  /// Its cost, such as "each rank receives 1024 bytes more"; empty if it costs
  /// nothing.
  std::string cost;
  /// What to change in the plan or in the model.
  std::string edit;
};

/// "1 byte", "12 KiB (12288 bytes)".
std::string printBytes(int64_t bytes);

/// "2x8xf32".
std::string printType(RankedTensorType type);

/// "'layers.0'" or "the root module".
std::string describeModule(StringRef fqn);

/// Emits each finding as a warning, or as an error with `strict`; fails if it
/// emits an error. Of several findings with the same check and location, it
/// shows the first and counts the others.
LogicalResult emitFindings(ArrayRef<Finding> findings, bool strict);

} // namespace mlir::tp::plan

#endif // TP_PLAN_FINDING_H
