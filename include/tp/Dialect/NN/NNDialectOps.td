//===- NNDialectOps.td - All ops of the nn dialect ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the reference docs/Dialects/NN.md.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_NN_NNDIALECTOPS_TD
#define TP_DIALECT_NN_NNDIALECTOPS_TD

include "tp/Dialect/NN/NNOps.td"
include "tp/Dialect/NN/NNExpertOps.td"

#endif // TP_DIALECT_NN_NNDIALECTOPS_TD
