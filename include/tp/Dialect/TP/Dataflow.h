//===- Dataflow.h - Rules of collectives ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_DATAFLOW_H
#define TP_DIALECT_TP_DATAFLOW_H

#include "tp/Dialect/TP/TPEnums.h"

namespace mlir::tp {

/// What a collective computes from the operands of a group, in this order: it
/// takes one of them or all; reduces them; keeps this rank's block; joins what
/// is left.
struct Dataflow {
  std::optional<ReductionKind> reduction = {};
  /// The dimension of which each rank keeps its block.
  std::optional<int64_t> cut = {};
  /// The dimension along which blocks are joined, in the group's order.
  std::optional<int64_t> joined = {};
  /// The position that all ranks take the operand of.
  std::optional<int64_t> root = {};
  /// By position, the position that a rank takes the operand of; empty: root,
  /// or all.
  ArrayRef<int64_t> sources = {};

  /// The position whose operand the rank at `position` takes; nullopt: all.
  std::optional<int64_t> getSource(size_t position) const {
    return sources.empty() ? root : sources[position];
  }
};

/// A box of elements that a rank copies from `source`'s block into its own;
/// offsets count within the local blocks, one entry per dimension.
struct Transfer {
  int64_t source = 0;
  SmallVector<int64_t> sourceOffset;
  SmallVector<int64_t> offset;
  SmallVector<int64_t> size;
};

} // namespace mlir::tp

#endif // TP_DIALECT_TP_DATAFLOW_H
