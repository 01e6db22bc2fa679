//===- HaloExchange.h - What ranks need for their windows -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_HALOEXCHANGE_H
#define TP_INTERFACES_HALOEXCHANGE_H

#include "tp/Interfaces/ShardingRule.h"

namespace mlir::tp {

/// What the ranks of a group hold and need of the operand's dimension, if its
/// halo factor is split. For windows of 3 elements with a padding of 1, and 8
/// elements over two ranks:
///
///   held = {[0, 4), [4, 8)}, needed = {[-1, 5), [3, 9)}, margin = 1
struct HaloExchange {
  // All by the rank's index along the axes.
  /// Its block of the result, and what it computes. This is its block, except
  /// where positions become elements and not all blocks begin at multiples of
  /// the stride: then it begins at such a multiple and has stride - 1 more
  /// elements than the block, so that ranks with equal blocks have equal
  /// paddings.
  SmallVector<Interval> blocks, computed;
  /// Its block of the operand, and what it needs to compute that.
  SmallVector<Interval> held, needed;
  /// How many elements beyond an end of the dimension a rank needs at most.
  int64_t margin = 0;
  /// Whether each rank needs only elements of its own block, from its first
  /// one on, so that nothing has to be exchanged.
  bool isLocal = true;

  HaloExchange(const Halo &halo, ArrayRef<AxisRefAttr> axes, MeshOp mesh);

  /// The number of elements that the rank receives from others.
  int64_t getNumReceived(int64_t index) const;
};

} // namespace mlir::tp

#endif // TP_INTERFACES_HALOEXCHANGE_H
