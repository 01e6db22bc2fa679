//===- InputSpec.h - the example inputs of a model --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TorchScript knows neither shapes nor element types of a model's inputs; the
// user states them, one `name=2x64xi64` each. A program of torch.export knows
// them, except for dynamic sizes.
//
//===----------------------------------------------------------------------===//

#ifndef TP_IMPORT_INPUTSPEC_H
#define TP_IMPORT_INPUTSPEC_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::tp {

/// The name and type of one input.
struct InputSpec {
  std::string name;
  RankedTensorType type;
};

/// Parses `name=SIZExSIZE...xTYPE`, as in `ids=2x64xi64`, `x=f32` (a scalar).
/// The types are f32, f64, f16, bf16, i64, i32, i16, i8, ui8 and i1 (also
/// spelled bool). The error says what is wrong with `text` and what would be
/// right.
llvm::Expected<InputSpec> parseInputSpec(MLIRContext *context,
                                         llvm::StringRef text);

} // namespace mlir::tp

#endif // TP_IMPORT_INPUTSPEC_H
