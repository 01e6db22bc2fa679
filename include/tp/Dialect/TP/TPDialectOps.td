//===- TPDialectOps.td - All ops of the tp dialect ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the reference docs/Dialects/TP.md.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_TPDIALECTOPS_TD
#define TP_DIALECT_TP_TPDIALECTOPS_TD

include "tp/Dialect/TP/TPOps.td"
include "tp/Dialect/TP/PipelineOps.td"

#endif // TP_DIALECT_TP_TPDIALECTOPS_TD
