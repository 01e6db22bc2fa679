//===- Origin.h - Source ops of generated code ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Until ops are lowered, `tp.fqn` says where they come from. Lowering and
// fusion build new ops and pass on only locations, so origins are kept in
// locations from then on.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_CODEGEN_PROGRAM_ORIGIN_H
#define TP_LIB_CODEGEN_PROGRAM_ORIGIN_H

#include "mlir/IR/Operation.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {

/// An op of a per-rank program.
struct Origin {
  int64_t position; ///< in the program: origins sort by it
  StringRef fqn;    ///< of its module; empty where it has none
  StringRef op;     ///< its name, "rms_norm"; other dialects' with the prefix

  /// The FQN where `call` calls the function that has the op; `fqn` if `call`
  /// is null.
  StringRef getFqn(tprt::CallOp call) const;
};

/// One location that joins those of `op` and of all ops inside.
Location getLocationOfAll(Operation *op);

/// The origins in the locations of `op` and of all ops inside, each once, in
/// program order.
SmallVector<Origin> getOrigins(Operation *op);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_PROGRAM_ORIGIN_H
