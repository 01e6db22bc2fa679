//===- GradientOpInterface.h - Reverse-mode gradients -----------*- C++ -*-===//

#ifndef TP_INTERFACES_GRADIENTOPINTERFACE_H
#define TP_INTERFACES_GRADIENTOPINTERFACE_H

#include "mlir/IR/OpDefinition.h"
#include "tp/Interfaces/GradientBuilder.h"

#include "tp/Interfaces/GradientOpInterface.h.inc"

#endif // TP_INTERFACES_GRADIENTOPINTERFACE_H
