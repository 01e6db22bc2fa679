//===- RepeatedOps.h - Sequences of ops that a block repeats ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_PROGRAM_REPEATEDOPS_H
#define TP_LIB_CODEGEN_PROGRAM_REPEATEDOPS_H

#include "mlir/IR/Operation.h"

namespace mlir::tp {

/// Ops of a block, `count` sequences of `period` each. Ops at the same offset
/// in two sequences have the same class.
struct RepeatedOps {
  size_t begin, period, count;
};

/// The sequences of `ops` that repeat and, if only one of each were compiled,
/// save at least `minSaved` ops each; `classes` are the ops' classes. Sequences
/// begin where the fewest fusions are lost if ops of two sequences are never
/// fused.
SmallVector<RepeatedOps> findRepeatedOps(ArrayRef<Operation *> ops,
                                         ArrayRef<unsigned> classes,
                                         size_t minSaved);

/// How many products `op` consists of, each summed over dimensions that several
/// operands and no result have: 1 for a matrix product, 2 or more for
/// attention and for gradients that are several products.
unsigned countContractions(Operation *op);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_PROGRAM_REPEATEDOPS_H
