//===- RowLayout.h - A kernel's rows over blocks and threads ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_GPU_ROWLAYOUT_H
#define TP_LIB_CODEGEN_GPU_ROWLAYOUT_H

#include "ThreadLoops.h"

namespace mlir::tp {

/// The loops around the ops of a kernel, outermost first, and the ops. For a
/// single op with a reduction, these are the op's parallel loops.
struct KernelRows {
  SmallVector<scf::ForOp> loops;
  SmallVector<int64_t> sizes;
  SmallVector<unsigned> dims; ///< of the single op
  std::vector<LoopPlan> plans;
};

/// How rows are spread over blocks and threads.
struct RowLayout {
  int64_t rows = 1, team = 1, teams = 1;
  bool isInterleaved = false;
};

/// The number of iterations of a loop from 0 in steps of 1; nullopt for others.
std::optional<int64_t> getTripCount(scf::ForOp loop);

/// Whether every thread runs `op` for itself.
bool isRepeated(Operation *op);

/// The rows of `root`, a linalg.generic or a nest of loops around some. Emits
/// an error if its rows can't run at the same time.
FailureOr<KernelRows> getKernelRows(Operation *root);

/// `sharedBytes`: of the buffers in shared memory that each row needs.
RowLayout chooseRowLayout(KernelRows &rows, int64_t sharedBytes);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_GPU_ROWLAYOUT_H
