//===- TPRT.cpp - the tprt dialect ----------------------------------------===//

#include "tp/Dialect/TPRT/TPRT.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::tprt;

#include "tp/Dialect/TPRT/TPRTDialect.cpp.inc"

void TPRTDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tp/Dialect/TPRT/TPRTOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "tp/Dialect/TPRT/TPRTOps.cpp.inc"

//===----------------------------------------------------------------------===//
// CheckIndexOp
//===----------------------------------------------------------------------===//

bool CheckIndexOp::bufferizesToMemoryRead(
    OpOperand &, const bufferization::AnalysisState &) {
  return true;
}

bool CheckIndexOp::bufferizesToMemoryWrite(
    OpOperand &, const bufferization::AnalysisState &) {
  return false;
}

bufferization::AliasingValueList
CheckIndexOp::getAliasingValues(OpOperand &,
                                const bufferization::AnalysisState &) {
  return {};
}

LogicalResult
CheckIndexOp::bufferize(RewriterBase &rewriter,
                        const bufferization::BufferizationOptions &options,
                        bufferization::BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, getIndices(), options, state);
  if (failed(buffer))
    return failure();
  rewriter.modifyOpInPlace(*this, [&] { getIndicesMutable().assign(*buffer); });
  return success();
}
