//===- ScalarCode.h - Code of ops on scalars --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_SCALARCODE_H
#define TP_LIB_PROOF_SCALARCODE_H

#include "ExactScalars.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace mlir::tp::exact {

/// The computation that an op on scalars does.
struct ScalarCode {
  using Function = Scalar (*)(const Scalar *operands, const ScalarCode &code);
  Function function = nullptr;
  /// A predicate, a width in bits or a hash of a function's name; which one
  /// depends on `function`.
  uint64_t detail = 0;
  unsigned numOperands = 0;
  /// The function on real numbers; null if it isn't known.
  double (*value)(const double *operands) = nullptr;
  Interpretation *meaning = nullptr;
  Site *site = nullptr;
};

/// The code of an op of arith or math on scalars, or elementwise on tensors;
/// nullopt for other ops.
std::optional<ScalarCode> compile(Operation *op, Interpretation &meaning);

/// Whether fast-math flags make the result undefined for NaN or infinite
/// numbers.
bool assumesFinite(Operation *op);

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_SCALARCODE_H
