//===- Gemv.h - Products of few rows on a CUDA device -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_GEMV_H
#define TPRT_LIB_CUDA_GEMV_H

#include "cpu/GemmOperands.h"
#include "cuda/GemvArguments.h"
#include "cuda/OwnKernels.h"
#include "tprt/abi.h"

#include <array>

namespace tprt::cuda {

/// The products of few rows of one stream, by own kernels. Such a product takes
/// as long as reading B, and between two launches the memory is idle. Therefore
/// products of the same A, such as the projections of attention, become one
/// launch: a product is held until something else is to be enqueued.
class RowProducts {
public:
  explicit RowProducts(Kernels &kernels) : kernels(kernels) {}

  /// Takes a product of up to TPRT_FEW_ROWS rows if it is one of f32, f16 or
  /// bf16 in one batch, whose rows of A and columns of B are contiguous and
  /// aligned to 16 bytes. Otherwise does nothing and returns false. May enqueue
  /// products that were taken before.
  bool add(const tprt_gemm_args &args, const GemmOperands &operands,
           CUstream stream);
  /// Enqueues what is held. Has to be called before anything else is enqueued.
  void flush(CUstream stream);
  bool isEmpty() const { return numHeld == 0; }

private:
  /// Bytes from `begin` to `end`; none if they are equal.
  struct Range {
    uintptr_t begin, end;
  };
  struct Product {
    tprt_gemm_args args;
    GemmOperands operands;

    /// The bytes of `count` rows of `size` elements; none without data.
    Range getRange(const void *data, int64_t count, int64_t stride,
                   int64_t size) const;
    Range getWritten() const;
    std::array<Range, 5> getRead() const;
  };
  /// Whether the launch of what is held can compute this, too.
  bool canJoin(const Product &product) const;
  /// Whether the product's factor is the result of the one that is held.
  bool isGatedByHeld(const Product &product) const;

  Kernels &kernels;
  std::array<Product, tprt_kernels::maxGemvParts> held;
  int numHeld = 0;
  bool isGated = false;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_GEMV_H
