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
#include "mlir/IR/Attributes.h"
#include "mlir/IR/Types.h"
#include <string>

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

/// A number with the sign of `a` that is zero, infinite or NaN exactly if `a`
/// is.
double getSign(Scalar a);

/// The value as an integer of `width` bits.
uint64_t wrap(uint64_t value, uint64_t width);

/// The value of a scalar constant.
Scalar getConstant(Attribute value);

std::string print(Scalar number, Type type);

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_EXACTSCALARS_H
