//===- Utils.h - What several passes need -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRANSFORMS_UTILS_H
#define TP_TRANSFORMS_UTILS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// Moves the bodies of all nn.module ops under `root` into their parents; each
/// op that moves keeps the module's FQN as `tp.fqn`.
void inlineModules(Operation *root);

/// Replaces all nn.stop_gradient ops under `root` by their operands: nothing
/// there is differentiated any more.
void removeStopGradients(Operation *root);

/// Where ops of `block` read the same parameter, the first of them reads it for
/// all, and what FSDP gathers of it is gathered once. `onlyFsdp`: only of
/// parameters that FSDP splits (`tp.fsdp_group`).
void shareParameters(Block &block, bool onlyFsdp);

/// Fails with an error where a tensor of `module` has more than 2^40 elements:
/// sizes, and products of them, are computed with 64 bits.
LogicalResult checkSizes(ModuleOp module);

/// The one mesh of `module`; fails with an error where there are several, gives
/// null where there is none.
FailureOr<MeshOp> getMesh(ModuleOp module);

/// The functions with a body that nobody in `module` calls; fails with an error
/// where there are functions, but each is called.
FailureOr<SmallVector<func::FuncOp>> getRoots(ModuleOp module);

/// The functions with a body, those together that are the programs of one: a
/// function that all ranks run alone, else each with its `tp.ranks`.
SmallVector<SmallVector<func::FuncOp>> getPrograms(ModuleOp module);

/// The FQN that an op comes from; "" where it is not known.
StringRef getFqn(Operation *op);

/// The sharding that an argument or result attribute gives; null without one.
ShardingAttr getArgSharding(FunctionOpInterface function, unsigned index);
ShardingAttr getResultSharding(FunctionOpInterface function, unsigned index);

/// The shardings that `tp.sharding` or `tp.shardings` gives to the op's
/// results; empty where the op has neither.
SmallVector<ShardingAttr> getResultShardings(Operation *op);
void setResultShardings(Operation *op, ArrayRef<ShardingAttr> shardings);

} // namespace mlir::tp

#endif // TP_TRANSFORMS_UTILS_H
