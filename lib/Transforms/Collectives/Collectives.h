//===- Collectives.h - Rewrites of collectives ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The concerns that tp-optimize-collectives and tp-overlap-collectives consist
// of. Each works on one program; that the programs of all ranks change alike is
// seen to by `rewriteInStep`.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVES_H
#define TP_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ShardingRule.h"
#include "tp/Sharding/Uniformity.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tp::collectives {

//===----------------------------------------------------------------------===//
// Common
//===----------------------------------------------------------------------===//

/// The collectives of a program in the order in which they stand.
SmallVector<CollectiveOpInterface> getCollectives(func::FuncOp program);

/// What a collective does; who asked for it doesn't matter.
DictionaryAttr getMeaning(Operation *op);

/// Bytes of a tensor.
int64_t getNumBytes(Type type);

/// A rank that runs `program`.
int64_t getAnyRank(func::FuncOp program);

/// `to` stands for `from`: it gets their modules and reasons, and its bytes.
void inherit(CollectiveOpInterface to, ArrayRef<CollectiveOpInterface> from);

/// The dimension that `factor` is all of; -1 where it isn't in the tensor,
/// nullopt where it is anything else.
std::optional<int64_t> getWholeDim(const TensorFactors &tensor,
                                   unsigned factor);

/// `type` with `size` elements along `dim`.
RankedTensorType resize(RankedTensorType type, int64_t dim, int64_t size);

/// `value` in another shape; itself where it has that one.
Value buildReshape(OpBuilder &b, Location loc, Value value,
                   ArrayRef<int64_t> shape);
/// `size` indices of `dim`.
Value buildSlice(OpBuilder &b, Location loc, Value value, int64_t dim,
                 int64_t start, int64_t size);

/// Emits the remark that `op` is rewritten.
void remarkRewrite(Operation *op, StringRef name, StringRef what);

/// The op of `block` that `op` is, or is in.
Operation *getAncestor(Block *block, Operation *op);

/// Adds what `value` is computed from to `ops`, in order; false unless that is
/// parameters alone.
bool collectOfParameters(Value value,
                         llvm::SmallSetVector<Operation *, 8> &ops);

/// Runs `rewrite` on each of `programs`, those of all ranks for one function.
/// What can be rewritten in one program needn't be in others: where blocks are
/// uneven, shapes differ, and where a rank's blocks are empty, constants stand
/// for what is computed elsewhere. All ranks must issue the same collectives,
/// so unless those that are left are the same in all programs, and come from
/// the same ones, all programs stay as they were.
LogicalResult rewriteInStep(ArrayRef<func::FuncOp> programs,
                            function_ref<LogicalResult(func::FuncOp)> rewrite);

//===----------------------------------------------------------------------===//
// The rewrites
//===----------------------------------------------------------------------===//

/// Slices of reductions and gathers, collectives that undo or continue one
/// another.
void populateSimplifyPatterns(RewritePatternSet &patterns);

/// Does equal collectives and slices of one value once. Returns how many went.
unsigned shareEqual(func::FuncOp program);

/// Drops collectives that no program uses, and what they were computed from.
/// Returns how many went.
unsigned eraseUnused(ArrayRef<func::FuncOp> programs);

/// Moves all_reduces and reduce_scatters of sums down through linear ops to
/// where fewer bytes, or fewer of them, do. What is whole is added to what they
/// reduce. Returns how many are saved.
unsigned mergeReductions(func::FuncOp program, Uniformity &uniformity);

/// Moves collectives whose operands don't change in a loop before it. Returns
/// how many.
unsigned hoistFromLoops(func::FuncOp program);

/// Splits what lies between an all_reduce and the ops that need its result
/// whole, where that moves no more bytes. Returns how many all_reduces went.
FailureOr<unsigned> splitBetweenReductions(func::FuncOp program,
                                           Uniformity &uniformity);

/// Joins independent all_reduces, and if wanted `gathers`, up to `bytes` of
/// operands each. Returns how many went.
unsigned bucket(func::FuncOp program, int64_t bytes, bool gathers);

/// Gathers the parameters of each of FSDP's groups by one collective in each
/// pass over the model. Returns how many went.
unsigned joinGathers(func::FuncOp program);

/// Reduces and scatters the gradients of each of FSDP's groups by one
/// collective. Returns how many went.
unsigned joinGradients(func::FuncOp program);

/// What is alive at once in a program, as `rematerialize` counts it, and the op
/// where it is most.
struct MemoryPeak {
  int64_t bytes = 0;
  Operation *op = nullptr;
};
MemoryPeak getMemoryPeak(func::FuncOp program);

/// Gathers again what would else be kept alive while more than `bytes` of
/// values are. Returns how often.
unsigned rematerialize(func::FuncOp program, int64_t bytes);

/// Splits collectives beside a contraction, and the contraction, into `chunks`
/// that can overlap. Returns how many collectives were split.
FailureOr<unsigned> decompose(func::FuncOp program, int64_t chunks);

/// Issues the gathers of a module's parameters when those of the module before
/// are first used. Returns how many moved.
unsigned prefetchParameters(func::FuncOp program);

/// Issues collectives as early, and waits for them as late, as order allows.
/// Returns how many were split into start and wait.
unsigned startEarly(func::FuncOp program);

} // namespace mlir::tp::collectives

#endif // TP_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVES_H
