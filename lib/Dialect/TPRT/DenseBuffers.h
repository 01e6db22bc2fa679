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

/// Bufferizes an op whose runtime function takes dense buffers. A view with gaps
/// goes through a copy.
template <typename OpT>
LogicalResult bufferizeDense(OpT op, RewriterBase &rewriter,
                             const bufferization::BufferizationOptions &options,
                             bufferization::BufferizationState &state) {
  SmallVector<Value> buffers, outputs;
  for (OpOperand &operand : op->getOpOperands()) {
    FailureOr<Value> buffer =
        getBuffer(rewriter, operand.get(), options, state);
    if (failed(buffer))
      return failure();
    FailureOr<Value> dense =
        getDense(rewriter, op.getLoc(), *buffer,
                 /*copy=*/!op.isDpsInit(&operand), options);
    if (failed(dense))
      return failure();
    buffers.push_back(*dense);
    if (op.isDpsInit(&operand))
      outputs.push_back(*buffer);
  }
  OpT::create(rewriter, op.getLoc(), TypeRange(), buffers, op->getAttrs());
  for (auto [dense, output] :
       llvm::zip_equal(ArrayRef(buffers).take_back(outputs.size()), outputs))
    if (dense != output &&
        failed(options.createMemCpy(rewriter, op.getLoc(), dense, output)))
      return failure();
  bufferization::replaceOpWithBufferizedValues(rewriter, op, outputs);
  return success();
}

} // namespace mlir::tprt

#endif // TP_LIB_DIALECT_TPRT_DENSEBUFFERS_H
