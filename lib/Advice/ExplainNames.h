//===- ExplainNames.h - How an explanation names things ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_ADVICE_EXPLAINNAMES_H
#define TP_LIB_ADVICE_EXPLAINNAMES_H

#include "Explain.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tp::explain {

/// "model.mlir:3:8"; empty if it isn't known.
std::string printLocation(Location loc);

/// "nn.linear (up)", or the location instead of the module if it has none.
std::string printOp(Operation *op);

/// "'up.weight'", "argument 0 'x'", "nn.relu (act) result 1".
std::string printValue(Value value);

/// Empty if the argument has no name.
std::string getArgumentName(func::FuncOp function, unsigned index);

/// What fixes a placement: the value or op, and the reason.
struct NamedSource {
  StringRef kind;
  std::string what, by;
};

/// `chain` has a source.
NamedSource nameSource(const PlacementChain &chain, const Program &program);

} // namespace mlir::tp::explain

#endif // TP_LIB_ADVICE_EXPLAINNAMES_H
