//===- ShapeOpInterfaces.cpp - Ops that only move elements ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Interfaces/ShapeOpInterfaces.h"

using namespace mlir;

#include "tp/Interfaces/ShapeOpInterfaces.cpp.inc"
