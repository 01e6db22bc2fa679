//===- ProgramForms.h - Programs as the matcher takes them ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_PROGRAMFORMS_H
#define TP_LIB_PROOF_PROGRAMFORMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Proof/Equivalence.h"

namespace mlir::tp {

/// A copy of `model` with all cross entropies marked as of split classes
/// (`loss_parallel`). The mark changes how a training step computes them, but
/// not their value. With a training file `train`, this includes the loss that
/// the file asks for. Null if nothing changes or the training file has errors.
OwningOpRef<ModuleOp> markSplitLosses(ModuleOp model, StringRef train);

/// Copies of `model` in which all attention has a context method, which changes
/// how attention is split, but not its value. The first one allows rows or heads
/// to be split (`cheapest`); in the second one, attention of as many columns as
/// rows is a ring. Copies that would be equal to others are left out. `train` is
/// that of markSplitLosses.
std::vector<OwningOpRef<ModuleOp>> setContextMethods(ModuleOp model,
                                                     StringRef train);

/// Copies of `model` with the experts of its mixtures in as many parts as a
/// dimension of `mesh` has ranks (dispatchExperts), for each such number that
/// divides them. The groups of tokens follow from how the arguments of
/// `programs` are split. `train` is that of markSplitLosses.
std::vector<OwningOpRef<ModuleOp>>
divideExperts(ModuleOp model, MeshOp mesh, ArrayRef<func::FuncOp> programs,
              StringRef train);

/// A parameter that a function assigns, and its value before the first run;
/// null if none is given.
struct Assignment {
  StringAttr fqn;
  FloatAttr init;
};

/// Turns the values that `function` assigns to parameters into results, in the
/// order of their FQNs and placed as the parameters are, and returns the
/// assignments. Also replaces each `nn.recompute` by its operand. A function
/// that assigns nothing gets no results.
SmallVector<Assignment> exposeAssignments(func::FuncOp function);

/// Joins contractions of gathered chunks, and contractions of chunks whose
/// results are scattered. Returns, for each original collective in program
/// order, the first collective that it was joined with (itself if there is
/// none) and the index of its chunk.
SmallVector<std::pair<unsigned, unsigned>> joinChunks(func::FuncOp program,
                                                      MeshOp mesh);

/// Replaces each all_reduce, all_gather and reduce_scatter of a concatenation
/// by one collective per part, if each use of the result cuts one part out.
/// Returns, for each original collective in program order, how many it became.
/// `keepAlike`: keeps buffers of values that are already flat and have one
/// type, because the partition hook of a loss builds such buffers.
SmallVector<unsigned> splitBuckets(const Program &program, MeshOp mesh,
                                   bool keepAlike);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_PROGRAMFORMS_H
