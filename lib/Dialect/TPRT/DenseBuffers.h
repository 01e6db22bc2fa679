//===- DenseBuffers.h - Buffers without gaps --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_DIALECT_TPRT_DENSEBUFFERS_H
#define TP_LIB_DIALECT_TPRT_DENSEBUFFERS_H

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

namespace mlir::tprt {

/// `buffer` if it is dense, else a new dense buffer of the same shape and
/// element type; with `copy`, the new buffer holds a copy.
FailureOr<Value> getDense(RewriterBase &rewriter, Location loc, Value buffer,
                          bool copy,
                          const bufferization::BufferizationOptions &options);

} // namespace mlir::tprt

#endif // TP_LIB_DIALECT_TPRT_DENSEBUFFERS_H
