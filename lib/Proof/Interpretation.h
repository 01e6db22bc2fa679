//===- Interpretation.h - Order, rounding and functions ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What comparisons, roundings and functions of floats give when programs are
// executed. There are two interpretations:
//
// - Real: what the ops mean, by the real values of their operands. Equal is
//   decided in the field, so that two ways to compute a number compare alike.
// - Free: each relation, rounding and function is any one that gives the same
//   for equal operands. Programs that are equal under it need nothing of what
//   order means, so that no boundary between inputs can tell them apart.
//
// Under the real one, what is compared is noted by the place that does it, from
// which inputs that look for boundaries are derived. Integers are the same
// under both; whether inputs found their boundaries is noted, too.
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
  /// Of a float: an element of the field, or one of the three below. Of others:
  /// a signed integer of 64 bits.
  uint64_t bits = 0;
  /// Of a float: its value up to rounding; infinite and NaN only where `bits`
  /// say so. A zero may have a sign.
  double real = 0;

  int64_t getInt() const { return static_cast<int64_t>(bits); }
};

constexpr uint64_t kPrime = (uint64_t(1) << 61) - 1;
/// What isn't in the field.
constexpr uint64_t kNaN = kPrime, kInfinity = kPrime + 1,
                   kMinusInfinity = kPrime + 2;
inline bool isFinite(Scalar a) { return a.bits < kPrime; }

/// The order of floats whose values are small integers: the upper half of the
/// field is negative.
inline int64_t toSigned(uint64_t a) {
  return a > kPrime / 2 ? static_cast<int64_t>(a) - static_cast<int64_t>(kPrime)
                        : static_cast<int64_t>(a);
}

/// A well mixed number below 2^61 - 1.
uint64_t hash(ArrayRef<uint64_t> values);

/// The value: exact where it is a small integer in the field.
double getValue(Scalar a);
/// Whether two values differ by as little as rounding errors do.
bool areClose(double a, double b);

/// Where a program compares, rounds, or takes the larger or smaller number.
struct Site {
  enum class Kind { Floats, Integers, IntegerExtremum };
  Kind kind = Kind::Floats;
  /// The op of the program, which may be lowered to several.
  Operation *op = nullptr;
  bool isOfReference = false, isPartOf = false;

  /// What integers were to each other, at least once.
  bool sawEqual = false, sawNeighbours = false, sawLess = false,
       sawGreater = false;
  /// Whether a relation of integers held and didn't.
  bool sawTrue = false, sawFalse = false;
  /// What integers are compared, by hashes; a sample where there is much.
  llvm::DenseSet<uint64_t> keys;

  /// The values of either operand, while they are few.
  struct Values {
    /// At all points so far, and at this one.
    llvm::SmallDenseSet<uint64_t, 8> bits, now;
    double last = 0;
    bool isEmpty = true, areMany = false, isFirstPoint = true;
    void add(double value);
    /// Whether they are the same at all points: constants, or the ranks' own.
    bool areConstant() const {
      return !areMany && !isFirstPoint && bits.size() == now.size();
    }
  } values[2];

private:
  friend class Interpretation;
  /// Of keys, at this point and at the one before.
  uint64_t point = 0, sum = 0, sumBefore = 0;
  bool hasSumBefore = false, varies = false;
};

class Interpretation {
public:
  enum class Mode { Real, Free };

  /// Begins with other inputs.
  void setPoint(Mode newMode, uint64_t newPoint);
  Mode getMode() const { return mode; }

  /// Whether what follows is the reference; and the op of the program that what
  /// is executed is a part of, if it is one.
  bool isReference = false;
  Operation *partOf = nullptr;
  /// Whether places are noted.
  bool isNoting = false;
  /// Whether anything was computed whose meaning the interpretation gives:
  /// an order of floats (or a rounding); a rounding; a function of them.
  bool usesOrder = false, usesRounding = false, usesFunctions = false;
  /// Whether integers were used by what isn't a polynomial of them modulo a
  /// power of 2: divided, shifted, extended, taken for floats.
  bool usesIntegers = false;

  Site *getSite(Operation *op, Site::Kind kind);
  ArrayRef<std::unique_ptr<Site>> getSites() const { return sites; }
  /// Whether another input gave a place other operands.
  bool isVarying(const Site &site) const {
    return site.varies || (site.hasSumBefore && site.sum != site.sumBefore);
  }
  /// Keys that are in the sample.
  bool isSampled(uint64_t key) const { return !(key & mask); }

  enum class Order { Less, Equal, Greater, Unordered };
  /// Of two floats, by value.
  Order getOrder(Scalar a, Scalar b);
  /// Whether a relation of floats, whose truth is `truth`, holds; of `negated`
  /// its opposite. `relation` names one that may be looked at from both sides.
  bool decide(Site *site, uint64_t relation, Scalar a, Scalar b, Order order,
              bool truth, bool negated);
  /// Notes a comparison of integers.
  void note(Site *site, uint64_t relation, int64_t a, int64_t b, bool truth);
  /// Whether a Free function gives NaN instead, as it does at every other
  /// point.
  bool mayBeNaN(uint64_t bits) const {
    return point % 2 && hash({bits, point}) % 16 == 0;
  }
  /// The larger one of two floats by the order of the interpretation.
  bool isFirstLarger(Site *site, Scalar a, Scalar b);
  /// The value to round: the same for all ways in which it is computed.
  double getRounded(Scalar a);

private:
  void addKey(Site *site, uint64_t key);

  Mode mode = Mode::Real;
  uint64_t point = 0;
  std::vector<std::unique_ptr<Site>> sites;
  DenseMap<std::pair<Operation *, Operation *>, Site *> byOp;
  /// Of different elements of the field whose values are hardly different, or
  /// hardly an integer: what was decided the first time.
  DenseMap<std::pair<uint64_t, uint64_t>, Order> close;
  DenseMap<uint64_t, double> rounded;
  uint64_t mask = 0;
  int64_t numKeys = 0;
};

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_INTERPRETATION_H
