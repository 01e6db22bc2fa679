//===- ArenaUse.h - What lives in an arena over time ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_ARENAUSE_H
#define TP_DIALECT_TP_ARENAUSE_H

#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace mlir::tp {

/// On a module: what lives in the largest of its programs' arenas over time, as
/// ArenaUse::toAttr writes it.
constexpr StringLiteral kArenaUseAttr = "tp.arena_use";

/// What lives in a program's arena, op by op. Texts are those of attributes of
/// the same context.
struct ArenaUse {
  /// An op, the module that it computes for, and the bytes that live then.
  struct Time {
    int64_t op, bytes;
    StringRef fqn; ///< empty if it isn't known
  };
  /// A buffer, and what writes it first: a module and an op of the model, both
  /// empty if they aren't known.
  struct Value {
    int64_t bytes;
    StringRef fqn, op;
    int64_t first, last; ///< the ops that use it
  };

  /// The ops that the program runs; other numbers of ops are below it.
  int64_t numOps = 0;
  /// The first op at which the most bytes live.
  int64_t peak = 0;
  /// Ascending: ops at which more lives than at their neighbors.
  SmallVector<Time> times;
  /// Those that live at the peak.
  SmallVector<Value> values;

  DictionaryAttr toAttr(MLIRContext *context) const;
  /// None if `attr` isn't what `toAttr` returns.
  static std::optional<ArenaUse> fromAttr(Attribute attr);
};

} // namespace mlir::tp

#endif // TP_DIALECT_TP_ARENAUSE_H
