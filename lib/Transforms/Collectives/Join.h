//===- Join.h - Several collectives as one ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_COLLECTIVES_JOIN_H
#define TP_LIB_TRANSFORMS_COLLECTIVES_JOIN_H

#include "Collectives.h"

namespace mlir::tp::collectives {

/// What collectives must have in common to be joined: what they do, except for
/// the gathered or scattered dimension, and the element type.
using JoinKey = std::pair<DictionaryAttr, Type>;

/// nullopt if `op` can't be joined with others. `mayFill`: uneven blocks may be
/// padded to one size.
std::optional<JoinKey> getJoinKey(Operation *op, bool mayFill);

/// Replaces `members`, which have one key and are in program order, by one
/// collective at the position of the last one.
void join(ArrayRef<CollectiveOpInterface> members);

} // namespace mlir::tp::collectives

#endif // TP_LIB_TRANSFORMS_COLLECTIVES_JOIN_H
