//===- GradientOpInterface.h - Reverse-mode gradients -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_GRADIENTOPINTERFACE_H
#define TP_INTERFACES_GRADIENTOPINTERFACE_H

#include "mlir/IR/OpDefinition.h"
#include "tp/Interfaces/GradientBuilder.h"

#include "tp/Interfaces/GradientOpInterface.h.inc"

#endif // TP_INTERFACES_GRADIENTOPINTERFACE_H
