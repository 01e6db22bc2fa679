//===- GPUKernel.h - A kernel and its launch --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_GPU_GPUKERNEL_H
#define TP_LIB_CODEGEN_GPU_GPUKERNEL_H

#include "ThreadLoops.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {

/// A kernel of a GPU module, and how it is launched.
struct GPUKernel {
  /// The most threads in a block of an elementwise kernel.
  static constexpr int64_t kMaxElementwiseBlock = 256;

  gpu::GPUFuncOp function;
  /// The number of blocks, and of the threads in each.
  int64_t grid = 1, block = kWarpSize;

  /// An empty kernel with arguments of `types`; an `index` becomes an i64.
  static GPUKernel create(gpu::GPUModuleOp module, Location loc, StringRef name,
                          TypeRange types);

  /// Chooses enough blocks for `count` threads.
  void setThreads(int64_t count);

  /// Ends the body at the builder's insertion point, once `grid` and `block`
  /// are known.
  void finish(OpBuilder &b);

  void launch(OpBuilder &b, Location loc, ValueRange operands) const;

  /// The thread's number in its block, or in the grid.
  static Value getThread(OpBuilder &b, Location loc);
  Value getGlobalThread(OpBuilder &b, Location loc) const;
};

/// The kernel (indices, record, site, bound), which writes the first index out
/// of range that `op` would report into the record.
GPUKernel createIndexCheck(gpu::GPUModuleOp module, StringRef name,
                           tprt::CheckIndexOp op);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_GPU_GPUKERNEL_H
