//===- Collectives.h - Rewrites of collectives ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rewrites that tp-optimize-collectives and tp-overlap-collectives consist
// of. Each works on one program; `rewriteInStep` makes sure that the programs
// of all ranks change alike.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVES_H
#define TP_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Interfaces/ShardingRule.h"
#include "tp/Sharding/Uniformity.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tp::collectives {

//===----------------------------------------------------------------------===//
// Common
//===----------------------------------------------------------------------===//

/// The collectives of a program, in program order.
SmallVector<CollectiveOpInterface> getCollectives(func::FuncOp program);

/// The attributes that say what a collective does, without its origin and
/// bytes.
DictionaryAttr getMeaning(Operation *op);

/// A rank that runs `program`.
int64_t getAnyRank(func::FuncOp program);

/// Gives `to`, which replaces `from`, their modules and reasons, and computes
/// its bytes.
void inherit(CollectiveOpInterface to, ArrayRef<CollectiveOpInterface> from);

/// Creates the collective that replaces `from`. `args` are the arguments of its
/// builder without those of its origin.
template <typename OpT, typename... Args>
OpT createFor(ArrayRef<CollectiveOpInterface> from, OpBuilder &b, Location loc,
              Args &&...args) {
  auto op = OpT::create(b, loc, std::forward<Args>(args)..., StringAttr(),
                        StringAttr(), IntegerAttr());
  inherit(op, from);
  return op;
}

/// The dimension that consists of `factor` alone; -1 if the tensor doesn't have
/// the factor, nullopt in any other case.
std::optional<int64_t> getWholeDim(const TensorFactors &tensor,
                                   unsigned factor);

/// Emits the remark that `op` is rewritten.
void remarkRewrite(Operation *op, StringRef name, StringRef what);

/// The op of `block` that is `op` or contains it.
Operation *getAncestor(Block *block, Operation *op);

/// Adds the ops that compute `value` to `ops`, in order; false unless `value`
/// is computed from parameters alone.
bool collectOfParameters(Value value,
                         llvm::SmallSetVector<Operation *, 8> &ops);

/// Runs `rewrite` on each of `programs`, the programs of all ranks for one
/// function. A rewrite may apply to one program and not to another: uneven
/// blocks have different shapes, and a rank with empty blocks has constants
/// where others compute. But all ranks must issue the same collectives. So if
/// the rewritten programs differ in their collectives, or in the original
/// collectives that these replace, all programs are restored.
LogicalResult rewriteInStep(ArrayRef<func::FuncOp> programs,
                            function_ref<LogicalResult(func::FuncOp)> rewrite);

//===----------------------------------------------------------------------===//
// The rewrites
//===----------------------------------------------------------------------===//

/// Patterns for slices of reductions and gathers, and for collectives that undo
/// or continue one another.
void populateSimplifyPatterns(RewritePatternSet &patterns);

/// Replaces equal collectives and slices of one value by the first one. Returns
/// how many were erased.
unsigned eliminateCommonCollectives(func::FuncOp program);

/// Erases collectives that no program uses, and the ops that only they used.
/// Returns how many collectives were erased.
unsigned eraseUnused(ArrayRef<func::FuncOp> programs);

/// Moves all_reduces and reduce_scatters of sums down through linear ops if
/// fewer bytes, or fewer collectives, suffice there. Terms that need no
/// reduction are added to the result. Returns how many collectives are saved.
unsigned mergeReductions(func::FuncOp program, Uniformity &uniformity);

/// Moves collectives whose operands are loop-invariant in front of the loop.
/// Returns how many.
unsigned hoistFromLoops(func::FuncOp program);

/// Splits the ops between an all_reduce and the ops that need its whole result,
/// if that moves no more bytes. Returns how many all_reduces were replaced.
FailureOr<unsigned> applySequenceParallelism(func::FuncOp program,
                                             Uniformity &uniformity);

/// Joins independent all_reduces, and all_gathers if `gathers`, up to `bytes`
/// of operands each. Returns how many fewer there are.
unsigned bucket(func::FuncOp program, int64_t bytes, bool gathers);

/// Gathers the parameters of each of FSDP's groups by one collective in each
/// pass over the model. Returns how many fewer there are.
unsigned joinGathers(func::FuncOp program);

/// Reduces and scatters the gradients of each of FSDP's groups by one
/// collective. Returns how many fewer there are.
unsigned joinGradients(func::FuncOp program);

/// The most bytes that are alive at once in a program, as `rematerialize`
/// counts them, and the op where they are.
struct MemoryPeak {
  int64_t bytes = 0;
  Operation *op = nullptr;
};
MemoryPeak getMemoryPeak(func::FuncOp program);

/// While more than `bytes` of values are alive at once, drops gathered values
/// and gathers them again before their next use. Returns how many gathers were
/// added.
unsigned rematerialize(func::FuncOp program, int64_t bytes);

/// Splits a collective before or after a contraction, and the contraction, into
/// `chunks` that can overlap. Returns how many collectives were split.
FailureOr<unsigned> chunkCollectives(func::FuncOp program, int64_t chunks);

/// Issues the gathers of a module's parameters before the first use of the
/// previous module's parameters. Returns how many gathers moved.
unsigned prefetchParameters(func::FuncOp program);

/// Starts collectives as early, and waits for them as late, as the order of ops
/// allows. Returns how many were split into start and wait.
unsigned startEarly(func::FuncOp program);

/// What collectives must have in common to be joined: what they do, except for
/// the gathered or scattered dimension, and the element type.
using JoinKey = std::pair<DictionaryAttr, Type>;

/// nullopt if `op` can't be joined with others. `mayFill`: uneven blocks may be
/// padded to one size.
std::optional<JoinKey> getJoinKey(Operation *op, bool mayFill);

/// Replaces `members`, which have one key and are in program order, by one
/// collective at the position of the last one.
void join(ArrayRef<CollectiveOpInterface> members);

//===----------------------------------------------------------------------===//
// Proof
//===----------------------------------------------------------------------===//

/// Whether the stages of a pipeline, the programs `byRank`, always get to their
/// ends, and each receives what another one sends. Emits an error if not.
LogicalResult verifyTransfers(ArrayRef<func::FuncOp> byRank, MeshOp mesh,
                              PipelineOp pipeline);

} // namespace mlir::tp::collectives

#endif // TP_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVES_H
