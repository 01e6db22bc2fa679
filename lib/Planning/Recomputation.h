//===- Recomputation.h - What a backward pass computes again ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLANNING_RECOMPUTATION_H
#define TP_LIB_PLANNING_RECOMPUTATION_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace mlir::tp::planning {

/// The keys `checkpoint` and `keep` of a training file (docs/Training.md).
struct Recomputation {
  std::vector<std::string> checkpoint, keep;

  bool isNone() const { return checkpoint.empty(); }
  /// The keys as a flow map without its braces: `"checkpoint": ["layers.*"]`.
  std::string print() const;
};

/// The ways to compute the blocks of `model` again, after the one that keeps
/// everything. Each needs less memory and more time than the one before:
/// - selective: the results of modules with weights are kept, as by Megatron-LM
///   and by torchtitan's selective checkpoints;
/// - full: only the inputs of blocks are kept.
/// The blocks are those that FSDP gathers together; a model without blocks has
/// none of these ways.
std::vector<Recomputation> getRecomputations(ModuleOp model);

/// `training`, the valid text of a training file without these keys, with them.
std::string addKeys(StringRef training, const Recomputation &recomputation);

} // namespace mlir::tp::planning

#endif // TP_LIB_PLANNING_RECOMPUTATION_H
