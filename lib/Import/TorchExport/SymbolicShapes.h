//===- SymbolicShapes.h - numbers for a program's symbols -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHEXPORT_SYMBOLICSHAPES_H
#define TP_LIB_IMPORT_TORCHEXPORT_SYMBOLICSHAPES_H

#include "ExportedProgram.h"
#include "tp/Import/InputSpec.h"
#include "llvm/Support/Error.h"

namespace mlir::tp {

/// The shapes of the program's inputs, by the index of the input. Those that
/// aren't tensors have one element, the number, or none.
using ExportShapes = std::vector<llvm::SmallVector<int64_t>>;

/// Chooses a number for each symbol: that of the shapes in `given` (null for an
/// input without one), else that of the example inputs. The error says which
/// shape or element type doesn't fit the program, and names the range that the
/// program was exported for.
llvm::Expected<ExportShapes>
bindShapes(const ExportedProgram &program,
           llvm::ArrayRef<const InputSpec *> given);

/// A shape as `tp.symbolic_shape` has it, one text per dimension: a number, a
/// sum of multiples of symbols ("2*s0+1"), or another expression as the program
/// has it. `shapes` has the values of the numbers among the inputs.
llvm::SmallVector<std::string> printShape(llvm::ArrayRef<SymbolicSize> shape,
                                          const ExportedProgram &program,
                                          const ExportShapes &shapes);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_SYMBOLICSHAPES_H
