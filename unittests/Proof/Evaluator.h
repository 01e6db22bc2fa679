//===- Evaluator.h - Programs over doubles ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a model, or the ranks' programs together, give for some inputs, computed
// with the machine's floating-point numbers. It shares no code with what the
// proof executes: the ops are written down once more, as docs/Dialects says.
//
//===----------------------------------------------------------------------===//

#ifndef TP_UNITTESTS_PROOF_EVALUATOR_H
#define TP_UNITTESTS_PROOF_EVALUATOR_H

#include "Array.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"
#include <map>
#include <optional>
#include <string>

namespace mlir::tp::test {

/// Values of arguments and parameters, of the whole tensors.
struct Values {
  std::vector<Array> arguments;
  std::map<std::string, Array> parameters;
};

/// What the function of global values returns; nullopt where an index is out of
/// range. Aborts on an op that it doesn't know.
std::optional<std::vector<Array>> evaluate(func::FuncOp function,
                                           const Values &values);

/// What the ranks, each of which runs its function of `programs`, return
/// together: nullopt where an index is out of range, ranks don't issue the same
/// collectives, or hold different numbers for one element.
std::optional<std::vector<Array>> evaluateRanks(ArrayRef<func::FuncOp> programs,
                                                MeshOp mesh,
                                                func::FuncOp reference,
                                                const Values &values);

} // namespace mlir::tp::test

#endif // TP_UNITTESTS_PROOF_EVALUATOR_H
