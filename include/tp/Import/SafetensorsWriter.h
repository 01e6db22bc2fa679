//===- SafetensorsWriter.h - write a safetensors file -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_IMPORT_SAFETENSORSWRITER_H
#define TP_IMPORT_SAFETENSORSWRITER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace mlir::tp {

/// One tensor of a weights file, row-major.
struct WeightTensor {
  std::string name;
  /// As safetensors spells it: F32, F64, F16, BF16, I64, I32, I16, I8, U8,
  /// BOOL.
  std::string dtype;
  llvm::SmallVector<int64_t> shape;
  uint64_t bytes = 0;
  uint64_t elementBytes = 1;
  /// Gives the elements. They are in the model's memory if they are dense there;
  /// otherwise they are copied, so hold them no longer than needed. Throws
  /// std::bad_alloc. Null if the model has no elements: it was built on PyTorch's
  /// meta device.
  std::function<std::shared_ptr<const char>()> load;
};

/// Writes a file of `tensors` to `os`. The data starts at a multiple of 64
/// bytes and is ordered by descending element size, which aligns every tensor
/// to its element size. All tensors have elements.
void writeSafetensors(llvm::raw_ostream &os,
                      llvm::ArrayRef<WeightTensor> tensors);

} // namespace mlir::tp

#endif // TP_IMPORT_SAFETENSORSWRITER_H
