//===- Activations.h - Activations as scalar code ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_NNTOLINALG_ACTIVATIONS_H
#define TP_CODEGEN_NNTOLINALG_ACTIVATIONS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::tp {

/// Emits `activation` of the floating-point number `x`, as nn's ops are
/// lowered.
Value emitActivation(ImplicitLocOpBuilder &b, tprt::Activation activation,
                     Value x);

/// The activation of `x` that `value` computes, if its ops match a formula of
/// emitActivation up to the order of summands and factors; they needn't come
/// from there. `look` skips the ops to ignore, such as casts, and returns the
/// value behind them.
std::optional<tprt::Activation>
matchActivation(Value value, Value x, llvm::function_ref<Value(Value)> look);

} // namespace mlir::tp

#endif // TP_CODEGEN_NNTOLINALG_ACTIVATIONS_H
