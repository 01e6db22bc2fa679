//===- ExactScalars.h - Arithmetic without rounding -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbers on which programs are executed, chosen so that mathematically
// equal results are exactly equal. A float is an element of the field of the
// integers modulo the prime 2^61 - 1, in which sums, products and quotients are
// exact, in any order. It also has its real value up to rounding, which
// comparisons, roundings and other functions use (Interpretation.h). A function
// that isn't made of sums, products and quotients (exp, tanh) gives a hash of
// its name and arguments: equal for equal arguments, and equal for others with
// a probability of about 2^-60. Infinite numbers and NaN are outside the field.
// Integers and booleans are represented by themselves.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_EXACTSCALARS_H
#define TP_LIB_PROOF_EXACTSCALARS_H

#include "Interpretation.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace mlir::tp::exact {

Scalar add(Scalar a, Scalar b);
Scalar sub(Scalar a, Scalar b);
Scalar negate(Scalar a);
Scalar mul(Scalar a, Scalar b);
/// As in IEEE 754, also for a zero divisor.
Scalar div(Scalar a, Scalar b);

/// Exact.
Scalar fromDouble(double value);
Scalar fromInteger(int64_t value);
/// The element `bits` of the field, with a real value between -2 and 2 that
/// depends only on `bits`.
Scalar fromHash(uint64_t bits);

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

/// The value as an integer of `width` bits.
uint64_t wrap(uint64_t value, uint64_t width);

/// The value of a scalar constant.
Scalar getConstant(Attribute value);

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_EXACTSCALARS_H
