//===- Interpretation.cpp - Order, rounding and functions -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExactScalars.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp::exact;

uint64_t mlir::tp::exact::hash(ArrayRef<uint64_t> values) {
  uint64_t state = 0x9e3779b97f4a7c15;
  for (uint64_t value : values) {
    state ^= value + 0x9e3779b97f4a7c15 + (state << 6) + (state >> 2);
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    state ^= state >> 31;
  }
  return state % kPrime;
}

double mlir::tp::exact::getValue(Scalar a) {
  if (!isFinite(a))
    return a.real;
  int64_t integer = toSigned(a.bits);
  if (integer == 0)
    return a.real == 0 ? a.real : 0; // a sum that cancels out has no sign
  constexpr int64_t kSmall = int64_t(1) << 40;
  auto value = static_cast<double>(integer);
  if (std::abs(integer) < kSmall &&
      std::abs(a.real - value) <= 1e-6 * std::abs(value))
    return value;
  return a.real;
}

bool mlir::tp::exact::areClose(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

void Site::Values::add(double value) {
  constexpr size_t kFew = 128;
  if (areMany || (!isEmpty && value == last))
    return;
  isEmpty = false;
  last = value;
  bits.insert(llvm::bit_cast<uint64_t>(value));
  now.insert(llvm::bit_cast<uint64_t>(value));
  if (bits.size() <= kFew)
    return;
  areMany = true;
  bits.clear();
}

void Interpretation::setPoint(Mode newMode, uint64_t newPoint) {
  mode = newMode;
  point = newPoint;
}

Site *Interpretation::getSite(Operation *op, Site::Kind kind) {
  if (!isNoting)
    return nullptr;
  Site *&site = byOp[{partOf ? partOf : op, op}];
  if (!site) {
    sites.push_back(std::make_unique<Site>());
    site = sites.back().get();
    site->kind = kind;
    site->op = partOf ? partOf : op;
    site->isOfReference = isReference;
    site->isPartOf = partOf;
    site->point = point;
  }
  if (site->point != point) {
    site->varies |= site->hasSumBefore && site->sum != site->sumBefore;
    site->hasSumBefore = true;
    site->sumBefore = site->sum;
    site->sum = 0;
    for (Site::Values &values : site->values) {
      values.isFirstPoint = false;
      values.isEmpty = true;
      values.now.clear();
    }
    site->point = point;
  }
  return site;
}

void Interpretation::addKey(Site *site, uint64_t key) {
  site->sum += key;
  key = hash({key, point});
  if (!isSampled(key) || !site->keys.insert(key).second)
    return;
  // Whether a key is in the sample depends on the key alone.
  constexpr int64_t kManyKeys = 1 << 20;
  if (++numKeys < kManyKeys)
    return;
  mask = mask * 2 + 1;
  numKeys = 0;
  for (auto &each : sites) {
    SmallVector<uint64_t> rest(llvm::make_filter_range(
        each->keys, [&](uint64_t key) { return isSampled(key); }));
    each->keys.clear();
    each->keys.insert_range(rest);
    numKeys += rest.size();
  }
}

Interpretation::Order Interpretation::getOrder(Scalar a, Scalar b) {
  if (a.bits == kNaN || b.bits == kNaN)
    return Order::Unordered;
  if (a.bits == b.bits)
    return Order::Equal;
  double x = getValue(a), y = getValue(b);
  auto compare = [&]() {
    return x < y ? Order::Less : x > y ? Order::Greater : Order::Equal;
  };
  if (!isFinite(a) || !isFinite(b) || !areClose(x, y))
    return compare();
  auto [it, inserted] = close.try_emplace({a.bits, b.bits}, compare());
  Order order = it->second;
  if (inserted)
    close[{b.bits, a.bits}] = order == Order::Less      ? Order::Greater
                              : order == Order::Greater ? Order::Less
                                                        : Order::Equal;
  return order;
}

bool Interpretation::decide(Site *site, uint64_t relation, Scalar a, Scalar b,
                            Order order, bool truth, bool negated) {
  if (mode == Mode::Free) {
    if (a.bits == b.bits || order == Order::Unordered)
      return truth;
    return (hash({relation, a.bits, b.bits, point}) & 1) != negated;
  }
  if (site) {
    site->values[0].add(getValue(a));
    site->values[1].add(getValue(b));
  }
  return truth;
}

void Interpretation::note(Site *site, uint64_t relation, int64_t a, int64_t b,
                          bool truth) {
  if (!site || mode == Mode::Free)
    return;
  addKey(site, hash({relation, uint64_t(a), uint64_t(b)}));
  site->values[0].add(a);
  site->values[1].add(b);
  site->sawEqual |= a == b;
  site->sawNeighbors |= a == b + 1 || b == a + 1;
  site->sawLess |= a < b;
  site->sawGreater |= a > b;
  (truth ? site->sawTrue : site->sawFalse) = true;
}

bool Interpretation::isFirstLarger(Site *site, Scalar a, Scalar b) {
  Order order = getOrder(a, b);
  if (mode == Mode::Free && isFinite(a) && isFinite(b))
    return hash({a.bits, point}) > hash({b.bits, point});
  if (site && mode == Mode::Real) {
    site->values[0].add(getValue(a));
    site->values[1].add(getValue(b));
  }
  return order == Order::Greater;
}

double Interpretation::getRounded(Scalar a) {
  double value = getValue(a);
  if (!isFinite(a))
    return value;
  // Near an integer, or near the middle of two, rounding errors would decide.
  double halves = std::nearbyint(value * 2) / 2;
  if (std::abs(value - halves) > 1e-9 * std::max(1.0, std::abs(value)))
    return value;
  if (fromDouble(halves).bits == a.bits)
    return halves;
  return rounded.try_emplace(a.bits, value).first->second;
}
