//===- ManifestCollectives.h - Collectives in the manifest ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_PROGRAM_MANIFESTCOLLECTIVES_H
#define TP_LIB_CODEGEN_PROGRAM_MANIFESTCOLLECTIVES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// A function and the ranks that run it.
struct RankedProgram {
  func::FuncOp function;
  SmallVector<int64_t> ranks;
  /// In the order in which they run.
  SmallVector<CollectiveOpInterface> collectives;
  /// Their indices in the manifest's list.
  SmallVector<int64_t> ids;
};

/// The collectives of the programs as docs/Artifact.md's list of COLLECTIVE;
/// sets their `ids`. Fails with an error if programs of one stage of a pipeline
/// run different ones, or if the blocks of a group don't fit together.
FailureOr<ArrayAttr>
describeCollectives(MutableArrayRef<RankedProgram> programs, MeshOp mesh);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_PROGRAM_MANIFESTCOLLECTIVES_H
