//===- ExactInputs.h - Inputs of executed programs --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values of arguments and parameters, by name and point: the same each time
// they are requested. Points differ in style; most of them probe boundaries:
// numbers that are compared, and their neighbors, first and last rows of
// blocks, equal elements, rows that are masked, NaN, infinite numbers, zeros of
// both signs.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_EXACTINPUTS_H
#define TP_LIB_PROOF_EXACTINPUTS_H

#include "Executor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::tp::exact {

class Inputs {
public:
  /// The integers that an input may have, so that indices are in range.
  struct Range {
    int64_t low = 0, bound = kAny;
    /// Boundaries outside the range that aren't tried: some of them, or all.
    llvm::SmallSetVector<int64_t, 4> excluded;
    bool onlyInside = false;
    static constexpr int64_t kAny = 1 << 20;

    bool isInside(int64_t number) const {
      return number >= low && number < bound;
    }
  };

  /// The number of points after which each style was used.
  static constexpr uint64_t kNumPoints = 14;

  void setPoint(Interpretation::Mode newMode, uint64_t newPoint);
  Tensor make(StringRef name, RankedTensorType type, bool isParameter);
  /// Also makes integers of many bits, of either sign.
  void makeWideIntegers() { areWide = true; }
  /// Whether any tensor made for this point has infinite elements.
  bool areInfinite() const { return hasInfinite; }
  /// The contribution of `rank` to a number that is the sum of contributions.
  Scalar getShare(Scalar of, int64_t rank, bool isFloat) const;

  Range &getRange(StringRef name) { return ranges[name]; }

  /// Call this if `index`, an element of the input or computed from it, was out
  /// of range. Tries fewer numbers outside the input's range from then on;
  /// returns false if it already tries none.
  bool exclude(StringRef name, int64_t index);

  /// Adds a number and its neighbors to those that inputs try.
  void addBoundary(double number);
  void addBoundary(int64_t number);
  /// Records the integers that inputs tried at this point.
  void endPoint();
  /// Whether each input has had every integer that it should try.
  bool hadBoundaries() const;

private:
  enum class Style {
    Any,
    Boundaries,
    Rows,
    Special,
    Equal,
    Whole,
    Large,
    Small,
    SpecialParameters,
    Zero
  };
  Scalar makeFloat(uint64_t number, Style style) const;
  int64_t makeInteger(uint64_t number, const Range &range) const;
  /// The integers that an input should try.
  SmallVector<int64_t> getTried(const Range &range, uint64_t width) const;

  Interpretation::Mode mode = Interpretation::Mode::Real;
  uint64_t point = 0;
  Style style = Style::Any;
  bool hasInfinite = false, areWide = false;
  llvm::StringMap<Range> ranges;
  SmallVector<double> floats;
  llvm::SmallSetVector<int64_t, 32> integers;
  /// By input: the number of integers that it tried before this point and at
  /// this point, and the number that it should try.
  struct Progress {
    size_t before = 0, now = 0, count = 0;
  };
  llvm::StringMap<Progress> progress;
};

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_EXACTINPUTS_H
