//===- GemmEpilogue.h - what products end with ------------------*- C++ -*-===//
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
/// by the one op that reads a contraction.
struct GemmEpilogue {
  /// A buffer, and its strides for the product's rows and batches; 0 where
  /// these are one. The columns' stride is 1.
  struct Operand {
    Value buffer;
    std::array<int64_t, 3> strides;
  };

  linalg::GenericOp op;
  Operand result;
  std::optional<Operand> addend, factor;
  std::optional<tprt::Activation> activation;
};

/// The epilogue of `contraction`, on buffers, which `init` wrote before, if not
/// null. Both may be moved down to it, and `contraction` may write the
/// epilogue's result instead of its own: nothing else touches that, and nothing
/// in between writes what they read, or is other than loops and library calls.
/// `loops` are those of the product that the contraction is.
std::optional<GemmEpilogue> findGemmEpilogue(linalg::GenericOp contraction,
                                             linalg::LinalgOp init,
                                             const ResultLoops &loops);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_FUSION_GEMMEPILOGUE_H
