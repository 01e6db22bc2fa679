//===- ExactInputs.h - What programs are executed on ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values of arguments and parameters, by name and point: the same whenever they
// are asked for. Points differ in style; most of them look for boundaries:
// numbers that are compared, and their neighbours, first and last rows of
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
  /// Which integers an input may have, such that indices are in range.
  struct Range {
    int64_t low = 0, bound = kAny;
    /// Boundaries outside that aren't tried either: some of them, or all.
    llvm::SmallSetVector<int64_t, 4> excluded;
    bool onlyInside = false;
    static constexpr int64_t kAny = 1 << 20;

    bool isInside(int64_t number) const {
      return number >= low && number < bound;
    }
  };

  /// How many points there are such that each style is used.
  static constexpr uint64_t kNumPoints = 14;

  void setPoint(Interpretation::Mode newMode, uint64_t newPoint);
  Tensor make(StringRef name, RankedTensorType type, bool isParameter);
  /// Also makes integers of many bits, of either sign.
  void makeWideIntegers() { areWide = true; }
  /// Whether what was made for this point has infinite elements.
  bool areInfinite() const { return hasInfinite; }
  /// A part of a number that is put together from several.
  Scalar getShare(Scalar of, int64_t rank, bool isFloat) const;

  Range &getRange(StringRef name) { return ranges[name]; }

  /// Tries fewer numbers out of an input's range, after one of them, or another
  /// that was computed from them, was no index; false if there are none.
  bool exclude(StringRef name, int64_t index);

  /// Adds a number, and its neighbours, to those that are tried.
  void addBoundary(double number);
  void addBoundary(int64_t number);
  /// Notes what inputs had at this point; and whether each of them had every
  /// integer that is to be tried.
  void endPoint();
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
  /// The integers that an input tries.
  SmallVector<int64_t> getTried(const Range &range, uint64_t width) const;

  Interpretation::Mode mode = Interpretation::Mode::Real;
  uint64_t point = 0;
  Style style = Style::Any;
  bool hasInfinite = false, areWide = false;
  llvm::StringMap<Range> ranges;
  SmallVector<double> floats;
  llvm::SmallSetVector<int64_t, 32> integers;
  /// By input: how many integers it has tried, at this point and before, and
  /// how many there are for it.
  struct Progress {
    size_t before = 0, now = 0, count = 0;
  };
  llvm::StringMap<Progress> progress;
};

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_EXACTINPUTS_H
