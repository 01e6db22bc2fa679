//===- Activations.h - activations as scalar code ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_NNTOLINALG_ACTIVATIONS_H
#define TP_CODEGEN_NNTOLINALG_ACTIVATIONS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::tp {

/// `activation` of the floating-point number `x`, which nn's ops become.
Value emitActivation(ImplicitLocOpBuilder &b, tprt::Activation activation,
                     Value x);

/// The activation of `x` that `value` is, by the formulas of emitActivation up
/// to the order of summands and factors: whoever wrote them. `look` takes a
/// value of the code to the one that stands for it, past casts that don't
/// count.
std::optional<tprt::Activation>
matchActivation(Value value, Value x, llvm::function_ref<Value(Value)> look);

} // namespace mlir::tp

#endif // TP_CODEGEN_NNTOLINALG_ACTIVATIONS_H
