//===- GradientOpInterface.cpp - Reverse-mode gradients -------------------===//

#include "tp/Interfaces/GradientOpInterface.h"

using namespace mlir;

#include "tp/Interfaces/GradientOpInterface.cpp.inc"
