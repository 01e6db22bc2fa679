//===- NNOps.td - All nn ops -------------------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNOPS_TD
#define TP_DIALECT_NN_NNOPS_TD

include "tp/Dialect/NN/NNStructureOps.td"
include "tp/Dialect/NN/NNElementwiseOps.td"
include "tp/Dialect/NN/NNContractionOps.td"
include "tp/Dialect/NN/NNNormalizationOps.td"
include "tp/Dialect/NN/NNConvolutionOps.td"
include "tp/Dialect/NN/NNShapeOps.td"
include "tp/Dialect/NN/NNIndexOps.td"
include "tp/Dialect/NN/NNGroupedOps.td"
include "tp/Dialect/NN/NNLossOps.td"
include "tp/Dialect/NN/NNTrainingOps.td"

#endif // TP_DIALECT_NN_NNOPS_TD
