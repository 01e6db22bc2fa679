//===- GemmEpilogue.h - GEMM epilogues --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_FUSION_GEMMEPILOGUE_H
#define TP_LIB_CODEGEN_FUSION_GEMMEPILOGUE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {

/// A loop over a product's result: how often it runs, and how many elements of
/// the result lie between iterations.
struct ResultLoop {
  int64_t size, stride;
};

/// The loops over a product's result.
struct ResultLoops {
  ResultLoop row, column, batches[2];
};

/// result = activation(contraction (+ addend)) (* factor), element by element,
/// as computed by the only op that reads a contraction.
struct GemmEpilogue {
  /// A buffer, and its strides for the product's rows and batches; 0 if there
  /// is only one. The columns' stride is 1.
  struct Operand {
    Value buffer;
    std::array<int64_t, 3> strides;
  };

  linalg::GenericOp op;
  Operand result;
  std::optional<Operand> addend, factor;
  std::optional<tprt::Activation> activation;
};

/// The epilogue of `contraction`, an op on buffers; `init`, if not null, is the
/// op that wrote its initial value. Both may then move down to the epilogue,
/// and `contraction` may write the epilogue's result instead of its own. This
/// holds because nothing else touches its own result, and the ops in between
/// are only loops and library calls that don't write what the two ops read.
/// `loops` are the loops of the GEMM that `contraction` becomes.
std::optional<GemmEpilogue> findGemmEpilogue(linalg::GenericOp contraction,
                                             linalg::LinalgOp init,
                                             const ResultLoops &loops);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_FUSION_GEMMEPILOGUE_H
