//===- TorchComposite.h - ops that consist of other ops ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch computes many ops by other ops: `aten::hstack` by `aten::cat`,
// `aten::lstm` by products and activations, step by step. Such an op needs no
// handler if its parts have handlers.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_ATEN_TORCHCOMPOSITE_H
#define TP_LIB_IMPORT_ATEN_TORCHCOMPOSITE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <ATen/core/dispatch/Dispatcher.h>

namespace mlir::tp {

/// Whether PyTorch itself computes the op by other ops on every device.
bool isComposite(const c10::FunctionSchema &schema);

/// Replaces the arguments of one part of a composite op, on the stack, by its
/// results.
using PartRunner =
    llvm::function_ref<void(const c10::OperatorHandle &op, c10::Stack &stack)>;

/// Runs PyTorch's kernel of a composite op on meta tensors. Each op that the
/// kernel calls goes to `runPart`, which may end the kernel by an exception.
void runComposite(const c10::FunctionSchema &schema, c10::Stack &stack,
                  PartRunner runPart);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHCOMPOSITE_H
