//===- Interpretation.h - Order, rounding and functions ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The results of comparisons, roundings and functions of floats when programs
// are executed. There are two interpretations:
//
// - Real: ops have their usual meaning, on the real values of their operands.
//   Equality is decided in the field, so two ways to compute a number compare
//   equal.
// - Free: each relation, rounding and function is arbitrary, except that it
//   gives the same result for equal operands. Programs that are equal under it
//   don't depend on the meaning of the order, so no boundary between inputs can
//   tell them apart.
//
// Under Real, the operands of each comparison are recorded by site; inputs that
// probe boundaries are derived from them. Integers behave the same under both
// interpretations; whether inputs met their boundaries is recorded, too.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_INTERPRETATION_H
#define TP_LIB_PROOF_INTERPRETATION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <cstdint>
#include <memory>

namespace mlir::tp::exact {

/// A number of a program that is executed.
struct Scalar {
  /// For a float: an element of the field, or one of the three constants below.
  /// For other types: a signed 64-bit integer.
  uint64_t bits = 0;
  /// For a float: its value up to rounding; infinite or NaN only if `bits` is.
  /// A zero may have a sign.
  double real = 0;

  int64_t getInt() const { return static_cast<int64_t>(bits); }
};

constexpr uint64_t kPrime = (uint64_t(1) << 61) - 1;
/// Values outside the field.
constexpr uint64_t kNaN = kPrime, kInfinity = kPrime + 1,
                   kMinusInfinity = kPrime + 2;
inline bool isFinite(Scalar a) { return a.bits < kPrime; }

/// The signed integer for an element of the field; the upper half of the field
/// is negative.
inline int64_t toSigned(uint64_t a) {
  return a > kPrime / 2 ? static_cast<int64_t>(a) - static_cast<int64_t>(kPrime)
                        : static_cast<int64_t>(a);
}

/// A well-mixed number below 2^61 - 1.
uint64_t hash(ArrayRef<uint64_t> values);

/// The real value; exact if it is a small integer in the field.
double getValue(Scalar a);
/// Whether two values differ by as little as rounding errors do.
bool areClose(double a, double b);

/// An op that compares, rounds, or takes the larger or smaller number.
struct Site {
  enum class Kind { Floats, Integers, IntegerExtremum };
  Kind kind = Kind::Floats;
  /// The op of the program, which may be lowered to several ops.
  Operation *op = nullptr;
  bool isOfReference = false, isPartOf = false;

  /// How two compared integers were related, at least once.
  bool sawEqual = false, sawNeighbors = false, sawLess = false,
       sawGreater = false;
  /// Whether a relation of integers ever held, and ever didn't.
  bool sawTrue = false, sawFalse = false;
  /// Hashes of the comparisons of integers; a sample if there are many.
  llvm::DenseSet<uint64_t> keys;

  /// The values of each operand, as long as they are few.
  struct Values {
    /// The values at all points so far, and at this one.
    llvm::SmallDenseSet<uint64_t, 8> bits, now;
    double last = 0;
    bool isEmpty = true, areMany = false, isFirstPoint = true;
    void add(double value);
    /// Whether the values are the same at all points, as those of constants or
    /// of values derived from the rank are.
    bool areConstant() const {
      return !areMany && !isFirstPoint && bits.size() == now.size();
    }
  } values[2];

private:
  friend class Interpretation;
  /// The current point, and the sums of keys at this point and at the one
  /// before.
  uint64_t point = 0, sum = 0, sumBefore = 0;
  bool hasSumBefore = false, varies = false;
};

class Interpretation {
public:
  enum class Mode { Real, Free };

  /// Starts a point, that is, new inputs.
  void setPoint(Mode newMode, uint64_t newPoint);
  Mode getMode() const { return mode; }

  /// Whether the reference is executed; and the op of the program whose
  /// lowering is executed, if any.
  bool isReference = false;
  Operation *partOf = nullptr;
  /// Whether sites are recorded.
  bool isNoting = false;
  /// Whether anything was computed that depends on the interpretation: an order
  /// of floats (or a rounding); a rounding; a function of floats.
  bool usesOrder = false, usesRounding = false, usesFunctions = false;
  /// Whether any integer op isn't a polynomial modulo a power of 2: a division,
  /// a shift, an extension, a conversion to floats.
  bool usesIntegers = false;

  Site *getSite(Operation *op, Site::Kind kind);
  ArrayRef<std::unique_ptr<Site>> getSites() const { return sites; }
  /// Whether the operands at `site` depend on the inputs.
  bool isVarying(const Site &site) const {
    return site.varies || (site.hasSumBefore && site.sum != site.sumBefore);
  }
  /// Whether `key` is in the sample.
  bool isSampled(uint64_t key) const { return !(key & mask); }

  enum class Order { Less, Equal, Greater, Unordered };
  /// The order of two floats by value.
  Order getOrder(Scalar a, Scalar b);
  /// Whether a relation of floats holds in this interpretation; `truth` says
  /// whether it really holds. `relation` identifies the relation. It is the
  /// same number for a relation and its negation, which `negated` tells apart.
  bool decide(Site *site, uint64_t relation, Scalar a, Scalar b, Order order,
              bool truth, bool negated);
  /// Records a comparison of integers.
  void note(Site *site, uint64_t relation, int64_t a, int64_t b, bool truth);
  /// Whether a function gives NaN for these bits under Free. It does for some,
  /// at every other point.
  bool mayBeNaN(uint64_t bits) const {
    return point % 2 && hash({bits, point}) % 16 == 0;
  }
  /// Whether `a` is larger than `b` by the order of the interpretation.
  bool isFirstLarger(Site *site, Scalar a, Scalar b);
  /// The value to round; the same however it was computed.
  double getRounded(Scalar a);

private:
  void addKey(Site *site, uint64_t key);

  Mode mode = Mode::Real;
  uint64_t point = 0;
  std::vector<std::unique_ptr<Site>> sites;
  DenseMap<std::pair<Operation *, Operation *>, Site *> byOp;
  /// The first decision for each pair of elements of the field whose values
  /// almost agree, and for each element whose value almost is an integer or
  /// lies almost half way between two.
  DenseMap<std::pair<uint64_t, uint64_t>, Order> close;
  DenseMap<uint64_t, double> rounded;
  uint64_t mask = 0;
  int64_t numKeys = 0;
};

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_INTERPRETATION_H
