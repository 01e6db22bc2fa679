//===- LoweringPatterns.h - Patterns of convert-nn-to-linalg ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_NNTOLINALG_LOWERINGPATTERNS_H
#define TP_LIB_CODEGEN_NNTOLINALG_LOWERINGPATTERNS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::tp::nnlinalg {

/// Each file has one of these functions, for the patterns of one family of ops.
/// Every pattern matches every op of its kind.
void populateElementwisePatterns(RewritePatternSet &patterns);
void populateContractionPatterns(RewritePatternSet &patterns);
void populateConvolutionPatterns(RewritePatternSet &patterns);
void populateAttentionPatterns(RewritePatternSet &patterns);
/// Patterns that turn nn ops into other nn ops; the other patterns make none.
void populateAttentionDecompositions(RewritePatternSet &patterns);
void populateConvolutionDecompositions(RewritePatternSet &patterns);
void populateNormalizationPatterns(RewritePatternSet &patterns);
void populateReductionPatterns(RewritePatternSet &patterns);
void populateShapePatterns(RewritePatternSet &patterns);
void populateLookupPatterns(RewritePatternSet &patterns);
void populateTrainingPatterns(RewritePatternSet &patterns);
/// `onDevice`: for many threads, without an order between them.
void populateScatterPatterns(RewritePatternSet &patterns, bool onDevice);
void populateIndexPatterns(RewritePatternSet &patterns, bool onDevice);
void populateGroupedPatterns(RewritePatternSet &patterns);
void populateLossPatterns(RewritePatternSet &patterns);

} // namespace mlir::tp::nnlinalg

#endif // TP_LIB_CODEGEN_NNTOLINALG_LOWERINGPATTERNS_H
