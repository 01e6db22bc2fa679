//===- NNExperts.h - Tokens on their way to experts -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNEXPERTS_H
#define TP_DIALECT_NN_NNEXPERTS_H

#include "tp/Dialect/NN/NN.h"

#define GET_OP_CLASSES
#include "tp/Dialect/NN/NNExpertOps.h.inc"

#endif // TP_DIALECT_NN_NNEXPERTS_H
