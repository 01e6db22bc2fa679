//===- Join.h - Several collectives as one ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_COLLECTIVES_JOIN_H
#define TP_LIB_TRANSFORMS_COLLECTIVES_JOIN_H

#include "Collectives.h"

namespace mlir::tp::collectives {

/// What collectives that can be joined have in common: what they do, but for
/// the dimension that is gathered or scattered, and the element type.
using JoinKey = std::pair<DictionaryAttr, Type>;

/// nullopt where `op` can't be joined with others. `mayFill`: uneven blocks are
/// filled up to one size.
std::optional<JoinKey> getJoinKey(Operation *op, bool mayFill);

/// Replaces `members`, of one key and in the order of the program, by one
/// collective where the last of them stands.
void join(ArrayRef<CollectiveOpInterface> members);

} // namespace mlir::tp::collectives

#endif // TP_LIB_TRANSFORMS_COLLECTIVES_JOIN_H
