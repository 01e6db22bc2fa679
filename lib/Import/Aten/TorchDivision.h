//===- TorchDivision.h - Quotients of integers ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_TORCHDIVISION_H
#define TP_LIB_IMPORT_ATEN_TORCHDIVISION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <ATen/core/ivalue.h>
#include <string>

namespace mlir::tp {

/// Checks integers that PyTorch divides by the processor's instruction, which
/// may end the process. Returns the problem, or an empty string.
std::string checkDivision(llvm::StringRef kind,
                          llvm::ArrayRef<c10::IValue> inputs);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHDIVISION_H
