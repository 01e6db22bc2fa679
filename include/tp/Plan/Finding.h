//===- Finding.h - what lint has to say about a plan ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan that can be carried out may still not be what was meant, or cost more
// than it has to. A finding says what, where, what it costs, and which edit
// mends it.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_FINDING_H
#define TP_PLAN_FINDING_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include <string>
#include <vector>

namespace mlir::tp::plan {

struct Finding {
  /// What was checked, such as "uneven". One entry that has the same said of
  /// many modules is warned of once.
  StringRef check;
  FileLineColLoc loc;
  std::string message;
  /// What it costs, such as "each rank receives 1024 bytes more"; empty where
  /// it costs nothing.
  std::string cost;
  /// What to change in the plan or in the model.
  std::string edit;
};

/// "1 byte", "12 KiB (12288 bytes)".
std::string printBytes(int64_t bytes);

/// Emits each finding as a warning, or as an error when `strict`; fails in the
/// latter case when there is any. Of findings with one check and place, the
/// first is shown and the others are counted.
LogicalResult emitFindings(ArrayRef<Finding> findings, bool strict);

} // namespace mlir::tp::plan

#endif // TP_PLAN_FINDING_H
