//===- Extensions.cpp - Sharding rules of upstream ops --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Extensions/Extensions.h"

using namespace mlir;

void tp::registerExternalModels(DialectRegistry &registry) {
  registerArithExternalModels(registry);
  registerLinalgExternalModels(registry);
  registerMathExternalModels(registry);
  registerShapeModels(registry);
  registerTensorExternalModels(registry);
  registerTosaExternalModels(registry);
}
