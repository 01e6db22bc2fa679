//===- ExactInputs.cpp - Inputs of executed programs ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExactInputs.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp::exact;

void Inputs::setPoint(Interpretation::Mode newMode, uint64_t newPoint) {
  mode = newMode;
  point = newPoint;
  hasInfinite = false;
  constexpr Style kStyles[kNumPoints] = {
      Style::Any,        Style::Rows,  Style::Boundaries,
      Style::Special,    Style::Equal, Style::Boundaries,
      Style::Special,    Style::Whole, Style::Large,
      Style::Boundaries, Style::Rows,  Style::SpecialParameters,
      Style::Small,      Style::Zero};
  constexpr Style kOthers[] = {Style::Boundaries, Style::Any, Style::Boundaries,
                               Style::Whole};
  style = mode == Interpretation::Mode::Free ? Style::Any
          : point < kNumPoints               ? kStyles[point]
                                             : kOthers[point % 4];
}

/// The most boundaries. If there are more, they are computed numbers instead of
/// numbers that these are compared with.
constexpr size_t kMany = 512;

void Inputs::addBoundary(double number) {
  if (!std::isfinite(number))
    return;
  if (floats.size() < kMany) {
    double fraction = std::max(std::abs(number), 1.0) / 1024;
    for (double by : {0.0, -1.0, 1.0, -fraction, fraction})
      if (!llvm::is_contained(floats, number + by))
        floats.push_back(number + by);
  }
  if (std::abs(number) < 1e15)
    addBoundary(static_cast<int64_t>(std::llround(number)));
}

void Inputs::addBoundary(int64_t number) {
  if (integers.size() < kMany)
    for (int64_t by : {0, -1, 1})
      integers.insert(number + by);
}

/// A number of 53 bits between -2 and 2.
static double getFraction(uint64_t number) {
  return std::ldexp(static_cast<double>(number >> 8), -51) - 2;
}

Scalar Inputs::makeFloat(uint64_t number, Style style) const {
  uint64_t rest = hash({number});
  switch (style) {
  case Style::Boundaries:
    if (rest % 4 && !floats.empty())
      return fromDouble(floats[rest / 4 % floats.size()]);
    break;
  case Style::Whole:
    return fromDouble(static_cast<double>(rest % 7) - 3);
  case Style::Large:
    return fromDouble(getFraction(number) * 1024);
  case Style::Small:
    return fromDouble(getFraction(number) / 1024);
  case Style::Zero:
    return fromDouble(rest % 2 ? 0.0 : -0.0);
  case Style::Special: {
    constexpr double kSpecial[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
    if (rest % 6 == 0)
      return fromDouble(kSpecial[rest / 6 % 5]);
    break;
  }
  case Style::SpecialParameters: {
    constexpr double kSpecial[] = {NAN, 0.0, -0.0};
    if (rest % 16 == 0)
      return fromDouble(kSpecial[rest / 16 % 3]);
    break;
  }
  default:
    break;
  }
  return fromDouble(getFraction(number));
}

/// From point to point, numbers are large, small, or of either sign, so that
/// conditions are sometimes true and sometimes false. An index is always in its
/// range.
int64_t Inputs::makeInteger(uint64_t number, const Range &range) const {
  Range used = range;
  // 45 bits, so that sums of a few of them fit into 53 bits.
  if (areWide && range.bound == Range::kAny && point % 4 == 3)
    return static_cast<int64_t>(number << 3) >> 19;
  if (range.bound == Range::kAny && point % 3) {
    used.bound = 8;
    used.low = point % 3 == 1 ? 0 : -8;
  }
  return used.low + static_cast<int64_t>(
                        number % std::max<int64_t>(used.bound - used.low, 1));
}

SmallVector<int64_t> Inputs::getTried(const Range &range,
                                      uint64_t width) const {
  SmallVector<int64_t> tried;
  // Try the whole range if it is small.
  constexpr int64_t kFew = 64;
  bool areFew = range.bound - range.low <= kFew;
  if (areFew && !integers.empty())
    llvm::append_range(tried, llvm::seq(range.low, range.bound));
  for (int64_t number : integers)
    if (static_cast<int64_t>(wrap(number, width)) == number &&
        (range.isInside(number)
             ? !areFew
             : !range.onlyInside && !range.excluded.contains(number)))
      tried.push_back(number);
  return tried;
}

bool Inputs::exclude(StringRef name, int64_t index) {
  Range &range = ranges[name];
  if (range.onlyInside)
    return false;
  if (range.isInside(index) || !integers.contains(index))
    return range.onlyInside = true;
  range.excluded.insert(index);
  return true;
}

Tensor Inputs::make(StringRef name, RankedTensorType type, bool isParameter) {
  Tensor tensor;
  tensor.shape.assign(type.getShape().begin(), type.getShape().end());
  int64_t size = llvm::product_of(tensor.shape);
  tensor.data.resize(size);
  uint64_t seed = llvm::xxHash64(name) + point;
  auto draw = [&](uint64_t i) { return hash({seed, i}); };
  // Each tensor is chosen at one of a style's two points.
  bool isChosen = (llvm::xxHash64(name) + (point >= 6)) % 2;
  Type element = type.getElementType();

  // The style of this tensor.
  Style own = style;
  if ((own == Style::Special && (isParameter || !isChosen)) ||
      (own == Style::SpecialParameters && !isParameter))
    own = Style::Any;
  if (isParameter && (own == Style::Rows || own == Style::Zero))
    own = Style::Any;
  int64_t row = size ? tensor.shape.empty() ? 1 : tensor.shape.back() : 1;
  auto isMasked = [&](int64_t i) {
    return own == Style::Rows && (i / row + point) % 3 == 0;
  };
  auto getNumber = [&](int64_t i) { return draw(own == Style::Equal ? 0 : i); };

  if (isa<FloatType>(element)) {
    for (int64_t i = 0; i < size; ++i) {
      uint64_t number = getNumber(i);
      if (mode == Interpretation::Mode::Free)
        tensor.data[i] = point % 2 && hash({number}) % 16 == 0
                             ? fromDouble(NAN)
                             : fromHash(number);
      else if (isMasked(i))
        tensor.data[i] = fromDouble(isChosen ? -INFINITY : 0);
      else
        tensor.data[i] =
            makeFloat(number, own == Style::Equal ? Style::Boundaries : own);
      // At least one.
      if (own == Style::Special && size)
        tensor.data[draw(uint64_t(1) << 61) % size] = fromDouble(NAN);
    }
    hasInfinite |= llvm::any_of(tensor.data, [](Scalar a) {
      return a.bits == kInfinity || a.bits == kMinusInfinity;
    });
    return tensor;
  }
  if (element.isInteger(1)) {
    for (int64_t i = 0; i < size; ++i)
      tensor.data[i] = {isMasked(i) ? 0 : getNumber(i) % 2};
    return tensor;
  }
  const Range &range = ranges[name];
  uint64_t width = element.isInteger() ? element.getIntOrFloatBitWidth() : 64;
  SmallVector<int64_t> tried = getTried(range, width);
  Progress &mine = progress[name];
  mine.now = 0;
  if (mine.count != tried.size())
    mine = {0, 0, tried.size()};
  for (int64_t i = 0; i < size; ++i) {
    int64_t number = makeInteger(getNumber(i), range);
    if (mode == Interpretation::Mode::Real && own != Style::Any &&
        own != Style::Equal && !tried.empty() && draw(~i) % 4)
      number = tried[(mine.before + mine.now++) % tried.size()];
    if (own == Style::Equal && !tried.empty())
      number = tried[draw(0) % tried.size()];
    if (isMasked(i))
      number = std::max<int64_t>(range.low, 0);
    tensor.data[i] = {wrap(number, width)};
  }
  return tensor;
}

Scalar Inputs::getShare(Scalar of, int64_t rank, bool isFloat) const {
  uint64_t number = hash({of.bits, static_cast<uint64_t>(rank)});
  if (!isFloat)
    return {number % (1 << 20)};
  // Small, so that adding contributions up loses no bits of small numbers.
  return mode == Interpretation::Mode::Free
             ? fromHash(number)
             : fromDouble((static_cast<double>(number % 64) - 32) / 8);
}

void Inputs::endPoint() {
  for (auto &each : progress) {
    each.second.before += each.second.now;
    each.second.now = 0;
  }
}

bool Inputs::hadBoundaries() const {
  return llvm::all_of(progress, [](const auto &each) {
    return each.second.before >= each.second.count;
  });
}
