//===- ExpertDispatch.h - Experts that tokens travel to ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRANSFORMS_EXPERTDISPATCH_H
#define TP_TRANSFORMS_EXPERTDISPATCH_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::tp {

/// How the tokens of a mixture are divided among ranks: into blocks of equal
/// size, numbered (major, part, minor).
struct TokenBlocks {
  /// The ranks of data parallelism that hold the same experts.
  int64_t major = 1;
  /// The parts of the experts.
  int64_t parts = 1;
  /// The ranks of context parallelism.
  int64_t minor = 1;

  int64_t getCount() const { return major * parts * minor; }
  bool operator==(const TokenBlocks &other) const {
    return major == other.major && parts == other.parts && minor == other.minor;
  }
};

/// Divides the experts of each mixture in `model` into parts, each of which
/// computes the rows of its own experts. Instead of one list of rows, sorted by
/// experts, there is one list for each part, between `nn.dispatch` and
/// `nn.combine`. Blocks of tokens with the same major and the same minor number
/// are a group, which has lists of its own. The model computes the same. The
/// modules inside those of experts are inlined.
///
/// A mixture is what transformers' `grouped_mm` experts are imported as: rows of
/// tokens, sorted by experts; `nn.grouped_matmul` and ops that compute row by
/// row; rows in the order of tokens again, and the sum over a token's rows.
///
/// Fails with an error at the first op that has another form. The parts must
/// divide the experts, and the blocks the tokens.
LogicalResult dispatchExperts(ModuleOp model, const TokenBlocks &blocks);

} // namespace mlir::tp

#endif // TP_TRANSFORMS_EXPERTDISPATCH_H
