//===- ExpertDispatch.h - Experts that tokens travel to ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRANSFORMS_EXPERTDISPATCH_H
#define TP_TRANSFORMS_EXPERTDISPATCH_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::tp {

/// Divides the experts of each mixture in `model` into `numParts` parts, each of
/// which computes the rows of its own experts. Instead of one list of rows,
/// sorted by experts, there is one list for each part, between `nn.dispatch` and
/// `nn.combine`. The model computes the same. The modules inside those of
/// experts are inlined.
///
/// A mixture is what transformers' `grouped_mm` experts are imported as: rows of
/// tokens, sorted by experts; `nn.grouped_matmul` and ops that compute row by
/// row; rows in the order of tokens again, and the sum over a token's rows.
///
/// Fails with an error at the first op that has another form. The parts must
/// divide the experts and the tokens.
LogicalResult dispatchExperts(ModuleOp model, int64_t numParts);

} // namespace mlir::tp

#endif // TP_TRANSFORMS_EXPERTDISPATCH_H
