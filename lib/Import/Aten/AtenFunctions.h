//===- AtenFunctions.h - Functions of several families ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_ATENFUNCTIONS_H
#define TP_LIB_IMPORT_ATEN_ATENFUNCTIONS_H

#include "Import/ImportBuilder.h"

namespace mlir::tp {

/// log(exp(x) + exp(y)).
Value logAddExp(ImportBuilder &b, Value x, Value y);

/// Σ coefficients[k] Tₖ(t) for t within [-1, 1], where Tₖ are the Chebyshev
/// polynomials.
Value chebyshevSum(ImportBuilder &b, ArrayRef<double> coefficients, Value t);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_ATENFUNCTIONS_H
