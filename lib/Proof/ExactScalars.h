//===- ExactScalars.h - Arithmetic without rounding -------------*- C++ -*-===//
//
// Numbers for executing programs such that equal means equal. A float is an
// element of the field of the integers modulo the prime 2^61 - 1: sums,
// products and quotients are exact, in any order. A function that isn't made of
// these (exp, tanh) is a hash of its name and arguments: equal for equal
// arguments, and equal otherwise with a probability of about 2^-60. Integers
// and booleans are themselves.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_EXACTSCALARS_H
#define TP_LIB_PROOF_EXACTSCALARS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace mlir::tp::exact {

/// An element of the field, or a signed integer of 64 bits.
using Scalar = uint64_t;

constexpr uint64_t kPrime = (uint64_t(1) << 61) - 1;

inline uint64_t add(uint64_t a, uint64_t b) {
  uint64_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}
inline uint64_t sub(uint64_t a, uint64_t b) {
  return a >= b ? a - b : a + kPrime - b;
}
inline uint64_t mul(uint64_t a, uint64_t b) {
  __uint128_t product = static_cast<__uint128_t>(a) * b;
  return add(static_cast<uint64_t>(product & kPrime),
             static_cast<uint64_t>(product >> 61));
}
/// 0 for 0.
uint64_t inverse(uint64_t a);
/// The order of floats: the upper half of the field is negative.
inline int64_t toSigned(uint64_t a) {
  return a > kPrime / 2 ? static_cast<int64_t>(a) - static_cast<int64_t>(kPrime)
                        : static_cast<int64_t>(a);
}
inline uint64_t fromSigned(int64_t value) {
  int64_t rest = value % static_cast<int64_t>(kPrime);
  return rest < 0 ? rest + kPrime : rest;
}
uint64_t fromFloat(const APFloat &value);

/// A well mixed number below 2^61 - 1.
uint64_t hash(ArrayRef<uint64_t> values);

/// What an op on scalars does to its operands' values.
struct ScalarCode {
  Scalar (*function)(const Scalar *operands, const ScalarCode &code);
  /// A predicate, a width in bits or the name of an unknown function, as the
  /// function takes it.
  uint64_t detail = 0;
  unsigned numOperands = 0;
};

/// Code for an op of arith or math on scalars, or elementwise on tensors;
/// nullopt for ops that aren't such.
std::optional<ScalarCode> compile(Operation *op);

/// The value as an integer of `width` bits.
Scalar wrap(Scalar value, uint64_t width);

/// The element of a constant.
Scalar getConstant(Attribute value);

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_EXACTSCALARS_H
