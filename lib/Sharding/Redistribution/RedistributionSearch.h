//===- RedistributionSearch.h - Search for redistribution plans -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Searches over the states of a space from both ends.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSEARCH_H
#define TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSEARCH_H

#include "RedistributionSpace.h"

namespace mlir::tp::redistribution {

struct SearchOptions {
  bool exchange = true;
  /// The most elements that an intermediate block may have; negative: no limit.
  int64_t maxPeak = -1;
  /// Order plans by collectives first, then by bytes.
  bool fewestCollectives = false;
  /// Only plans that receive fewer elements are wanted; negative: all.
  int64_t below = -1;
  /// Leave out placements that cut a dimension unevenly, except lists with
  /// which the source's or the target's list for the dimension begins.
  bool mostlyEven = false;
  /// The number of states that the search looks at before it gives up.
  int64_t maxStates = 4000;
};

/// The best moves from `from` to `to`. Nullopt if no moves lead there, or if
/// the search reached its limit before it found any. Adds the number of states
/// that it looks at to `numStates`.
std::optional<SmallVector<Move>> search(const Space &space, const State &from,
                                        const State &to,
                                        const SearchOptions &options,
                                        uint64_t &numStates);

} // namespace mlir::tp::redistribution

#endif // TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSEARCH_H
