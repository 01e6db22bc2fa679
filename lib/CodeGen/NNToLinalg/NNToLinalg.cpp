//===- NNToLinalg.cpp - The pass convert-nn-to-linalg ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "tp/CodeGen/NNToLinalg/NNToLinalg.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTNNTOLINALG
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

/// Every nn op has one pattern, and after the decompositions no pattern makes
/// nn ops. So one walk, producers first, converts them all. When a consumer is
/// converted, its producers are linalg ops already, and the pattern can look
/// through their reshapes.
void tp::convertNNToLinalg(Operation *root, bool onDevice) {
  RewritePatternSet decompositions(root->getContext());
  nnlinalg::populateAttentionDecompositions(decompositions);
  nnlinalg::populateConvolutionDecompositions(decompositions);
  walkAndApplyPatterns(root, std::move(decompositions));
  RewritePatternSet patterns(root->getContext());
  nnlinalg::populateElementwisePatterns(patterns);
  nnlinalg::populateContractionPatterns(patterns);
  nnlinalg::populateConvolutionPatterns(patterns);
  nnlinalg::populateAttentionPatterns(patterns);
  nnlinalg::populateNormalizationPatterns(patterns);
  nnlinalg::populateReductionPatterns(patterns);
  nnlinalg::populateShapePatterns(patterns);
  nnlinalg::populateLookupPatterns(patterns);
  nnlinalg::populateLossPatterns(patterns);
  nnlinalg::populateTrainingPatterns(patterns);
  nnlinalg::populateScatterPatterns(patterns, onDevice);
  nnlinalg::populateIndexPatterns(patterns, onDevice);
  nnlinalg::populateGroupedPatterns(patterns);
  walkAndApplyPatterns(root, std::move(patterns));
}

namespace {
struct ConvertNNToLinalg : tp::impl::ConvertNNToLinalgBase<ConvertNNToLinalg> {
  using ConvertNNToLinalgBase::ConvertNNToLinalgBase;

  void runOnOperation() override {
    if (failed(checkModulesAreInlined()) || failed(checkDropoutIsTrained()))
      return signalPassFailure();

    convertNNToLinalg(getOperation(), onDevice);
    eraseDeadOps();
  }

private:
  LogicalResult checkModulesAreInlined() {
    WalkResult result = getOperation()->walk([](nn::ModuleOp op) {
      op.emitOpError() << "'" << op.getFqn()
                       << "' has to be inlined before lowering ('tp-partition' "
                          "inlines modules)";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult checkDropoutIsTrained() {
    WalkResult result = getOperation()->walk([](nn::DropoutOp op) {
      op.emitOpError() << "is for a training step; import the model in "
                          "evaluation mode, or give a training file";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// Erases constants and reshapes that their users have looked through.
  void eraseDeadOps() {
    getOperation()->walk<WalkOrder::PostOrder, ReverseIterator>(
        [](Operation *op) {
          if (isOpTriviallyDead(op))
            op->erase();
        });
  }
};
} // namespace
