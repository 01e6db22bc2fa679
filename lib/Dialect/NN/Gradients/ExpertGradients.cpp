//===- ExpertGradients.cpp - Gradients on their way to experts ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/NNExperts.h"

using namespace mlir;
using namespace mlir::nn;
using tp::GradientBuilder;

void DispatchOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, CombineOp::create(b, getTokens().getType(), b.getGradient(),
                                     getSlots(), getGroups()));
}

void CombineOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, DispatchOp::create(b, getRows().getType(), b.getGradient(),
                                      getSlots(), getGroups()));
}
