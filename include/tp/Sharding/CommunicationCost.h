//===- CommunicationCost.h - Costs of placements ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SHARDING_COMMUNICATIONCOST_H
#define TP_SHARDING_COMMUNICATIONCOST_H

#include <algorithm>
#include <compare>
#include <cstdint>

namespace mlir::tp {

/// The cost of placements, compared in the order of its members.
struct CommunicationCost {
  /// Bytes of parameters that move. They come first because parameters are
  /// placed to stay. Like all bytes here, these are sums over ranks.
  int64_t parameterBytes = 0;
  /// Bytes that ranks receive, plus, for each collective, the bytes that could
  /// have moved in the time that it takes to start.
  int64_t volume = 0;
  int64_t bytes = 0;
  int64_t collectives = 0;
  /// Elements that a rank computes: if the communication is equal, the choice
  /// with the least to compute wins.
  int64_t work = 0;

  /// The cost of something impossible.
  static CommunicationCost infinite() { return {kInfinite, 0, 0, 0, 0}; }
  bool isInfinite() const { return parameterBytes >= kInfinite; }

  CommunicationCost &operator+=(const CommunicationCost &other) {
    if (isInfinite() || other.isInfinite())
      return *this = infinite();
    parameterBytes += other.parameterBytes;
    volume += other.volume;
    bytes += other.bytes;
    collectives += other.collectives;
    work += other.work;
    return *this;
  }
  /// Like +=, except that an infinite sum may differ from `infinite()`. For
  /// inner loops.
  void addUnlessInfinite(const CommunicationCost &other) {
    // A finite cost may be negative: it can be a difference of two costs.
    parameterBytes = std::max(parameterBytes, other.parameterBytes) >= kInfinite
                         ? kInfinite
                         : parameterBytes + other.parameterBytes;
    volume += other.volume;
    bytes += other.bytes;
    collectives += other.collectives;
    work += other.work;
  }
  friend CommunicationCost operator+(CommunicationCost a,
                                     const CommunicationCost &b) {
    return a += b;
  }
  /// `b` is finite.
  friend CommunicationCost operator-(CommunicationCost a,
                                     const CommunicationCost &b) {
    if (a.isInfinite())
      return a;
    return {a.parameterBytes - b.parameterBytes, a.volume - b.volume,
            a.bytes - b.bytes, a.collectives - b.collectives, a.work - b.work};
  }
  friend CommunicationCost operator*(const CommunicationCost &a, int64_t n) {
    if (a.isInfinite())
      return a;
    return {a.parameterBytes * n, a.volume * n, a.bytes * n, a.collectives * n,
            a.work * n};
  }
  /// Divides each member, rounding towards zero; `a` is finite.
  friend CommunicationCost operator/(const CommunicationCost &a, int64_t n) {
    return {a.parameterBytes / n, a.volume / n, a.bytes / n, a.collectives / n,
            a.work / n};
  }

  friend auto operator<=>(const CommunicationCost &,
                          const CommunicationCost &) = default;

private:
  /// Small enough that many of them can be added without overflow.
  static constexpr int64_t kInfinite = int64_t(1) << 56;
};

} // namespace mlir::tp

#endif // TP_SHARDING_COMMUNICATIONCOST_H
