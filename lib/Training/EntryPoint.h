//===- EntryPoint.h - the function that is trained --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_ENTRYPOINT_H
#define TP_LIB_TRAINING_ENTRYPOINT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tp {

/// The function that nothing calls, or `@main` if there are several. Emits an
/// error if there is none, or if it has several blocks.
FailureOr<func::FuncOp> findEntryPoint(ModuleOp module);

/// Sets the function's type by its arguments and `results`, which it returns
/// with `attrs`, one dictionary each.
void setResults(func::FuncOp function, ArrayRef<Value> results,
                ArrayRef<Attribute> attrs);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_ENTRYPOINT_H
