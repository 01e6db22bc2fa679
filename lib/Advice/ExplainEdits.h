//===- ExplainEdits.h - Edits that leave less to move -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_EXPLAINEDITS_H
#define TP_LIB_ADVICE_EXPLAINEDITS_H

#include "Explain.h"

namespace mlir::tp::explain {

/// Fills in `program.edits`: tries, for each movement, changes of what its
/// chains began with, by propagating the whole of `original` with each, and
/// keeps those that leave less to move. At most `limit` are tried.
void tryEdits(Program &program, const Propagation &propagation,
              ModuleOp original, PropagationOptions options, unsigned limit);

} // namespace mlir::tp::explain

#endif // TP_LIB_ADVICE_EXPLAINEDITS_H
