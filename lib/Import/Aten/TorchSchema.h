//===- TorchSchema.h - what an op's schema says -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_TORCHSCHEMA_H
#define TP_LIB_IMPORT_ATEN_TORCHSCHEMA_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include <ATen/core/function_schema.h>

namespace mlir::tp {

/// Whether the op writes to its first argument.
bool isInPlace(const c10::FunctionSchema &schema);

/// "add" for aten::add, and for aten::add_: the in-place form differs from the
/// op by its underscore.
StringRef baseName(const c10::FunctionSchema &schema);

/// Ops that read numbers out of a tensor into Python, by their qualified names.
bool readsData(StringRef name);

/// Ops whose result has a shape that depends on the data, by `baseName`.
bool hasDataDependentShape(StringRef name);

/// Ops that use only the shape and type of their first argument, by `baseName`.
bool usesShapeAlone(StringRef name);

/// Whether the result is random, for these inputs.
bool isRandom(const c10::FunctionSchema &schema,
              llvm::ArrayRef<c10::IValue> inputs);

/// Ops whose results PyTorch treats as tensors of their own, though they share
/// memory, by `baseName`.
bool separatesResults(StringRef name);

/// Whether the op computes with tensors, and doesn't just move them between
/// lists, tuples and dictionaries (whose schemas say `t`, or nothing). An op
/// without a schema doesn't.
bool computesTensors(const c10::FunctionSchema *schema);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHSCHEMA_H
