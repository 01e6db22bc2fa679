//===- GradientOpInterface.cpp - Reverse-mode gradients -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Interfaces/GradientOpInterface.h"

using namespace mlir;

#include "tp/Interfaces/GradientOpInterface.cpp.inc"
