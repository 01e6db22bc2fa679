//===- ExplainEdits.h - Edits that leave less to move -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_EXPLAINEDITS_H
#define TP_LIB_ADVICE_EXPLAINEDITS_H

#include "Explain.h"

namespace mlir::tp::explain {

/// Fills in `program.edits`. For each movement, tries changes of the entries or
/// attributes that its placements come from. Each change is applied to
/// `original`, which is propagated again as a whole; those that leave less to
/// move are kept. At most `limit` are tried.
void tryEdits(Program &program, const Propagation &propagation,
              ModuleOp original, PropagationOptions options, unsigned limit);

} // namespace mlir::tp::explain

#endif // TP_LIB_ADVICE_EXPLAINEDITS_H
