//===- Passes.cpp - Common code of passes that print ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Advice/Passes.h"

using namespace mlir;

bool tp::printsAnswer(const Pass &pass) {
  return pass.getArgument() == "tp-print-plan" ||
         pass.getArgument() == "tp-explain" ||
         pass.getArgument() == "tp-auto-plan" ||
         pass.getArgument() == "tp-scale-plan";
}
