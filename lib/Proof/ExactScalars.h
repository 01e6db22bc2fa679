//===- ExactScalars.h - Arithmetic without rounding -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers for executing programs such that equal means equal. A float is an
// element of the field of the integers modulo the prime 2^61 - 1, in which
// sums, products and quotients are exact, in any order; together with its real
// value up to rounding, by which it is compared, rounded and passed to other
// functions (Interpretation.h). A function that isn't made of sums, products
// and quotients (exp, tanh) gives a hash of its name and arguments: equal for
// equal arguments, and equal otherwise with a probability of about 2^-60.
// Infinite numbers and NaN are outside the field. Integers and booleans are
// themselves.
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
/// As IEEE 754 says, of a zero too.
Scalar div(Scalar a, Scalar b);

/// Exact.
Scalar fromDouble(double value);
Scalar fromInteger(int64_t value);
/// The element of the field with some value between -2 and 2 that depends on
/// nothing else.
Scalar fromHash(uint64_t bits);

/// What an op on scalars does to its operands' values.
struct ScalarCode {
  using Function = Scalar (*)(const Scalar *operands, const ScalarCode &code);
  Function function = nullptr;
  /// A predicate, a width in bits or the name of a function, as the function
  /// takes it.
  uint64_t detail = 0;
  unsigned numOperands = 0;
  /// Of real numbers; null where it isn't known.
  double (*value)(const double *operands) = nullptr;
  Interpretation *meaning = nullptr;
  Site *site = nullptr;
};

/// Code for an op of arith or math on scalars, or elementwise on tensors;
/// nullopt for ops that aren't such.
std::optional<ScalarCode> compile(Operation *op, Interpretation &meaning);

/// The value as an integer of `width` bits.
uint64_t wrap(uint64_t value, uint64_t width);

/// The element of a constant.
Scalar getConstant(Attribute value);

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_EXACTSCALARS_H
