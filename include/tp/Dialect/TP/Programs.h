//===- Programs.h - Functions for some of the ranks -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If ranks have blocks of different shapes, a function becomes several
// programs: the function itself and copies of it, each with the ranks that run
// it in `tp.ranks`. A copy names the function in `tp.copy_of`.
//
// A pipeline has such programs for each index along its mesh dimension. The
// function itself is that of index 0; the function of each further index names
// it in `tp.stage_of`.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_PROGRAMS_H
#define TP_DIALECT_TP_PROGRAMS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::tp {

/// On a copy of a function: the function's symbol.
constexpr llvm::StringLiteral kCopyOfAttr = "tp.copy_of";

/// On the function of a pipeline's index after 0: the symbol of index 0's
/// function.
constexpr llvm::StringLiteral kStageOfAttr = "tp.stage_of";

} // namespace mlir::tp

#endif // TP_DIALECT_TP_PROGRAMS_H
