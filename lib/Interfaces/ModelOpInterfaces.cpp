//===- ModelOpInterfaces.cpp - Modules and parameters ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Interfaces/ModelOpInterfaces.h"

using namespace mlir;

#include "tp/Interfaces/ModelOpInterfaces.cpp.inc"
