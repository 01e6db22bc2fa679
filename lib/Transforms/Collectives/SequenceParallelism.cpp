//===- SequenceParallelism.cpp - Sequence parallelism around reductions ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An all_reduce is a reduce_scatter followed by an all_gather. If the ops
// behind it work on rows, as norms, residual additions and activations do, they
// can run between the two, on each rank's rows alone. This moves the same
// bytes, with less work and less memory.
//
//   %1 = tp.all_reduce sum %0      %1 = tp.reduce_scatter sum %0 dim 1
//   %2 = nn.add %1, %x             %2 = nn.add %1, (tp.local_slice %x dim 1)
//   %3 = nn.layer_norm %2          %3 = nn.layer_norm %2
//   %4 = nn.linear %3, %w          %4 = nn.linear (tp.all_gather %3 dim 1), %w
//
// The candidates are ops whose rule has the rows as a parallel factor and whose
// other operands are the same on all ranks. An op is taken out again if more
// would have to be gathered behind it than before it. Each connected part of
// the remaining ops is split if it moves no more bytes than before.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "tp/Sharding/SplitInference.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

/// A value that can be computed block by block.
struct Candidate {
  Operation *op;
  AllReduceOp origin; // an all_reduce over the group
  int64_t dim;        // of the result, the one that is split
  unsigned factor = 0;
  bool isTaken = true;
};

class SequenceParallelizer {
public:
  explicit SequenceParallelizer(Uniformity &uniformity)
      : uniformity(uniformity) {}

  FailureOr<unsigned> run(func::FuncOp program) {
    rank = getAnyRank(program);
    // Choose everywhere first: the queries need the program as it was.
    std::vector<Candidates> taken;
    program.walk([&](Block *block) {
      candidates.clear();
      for (Operation &op : *block)
        consider(&op);
      prune();
      takeWorthwhile();
      taken.push_back(std::move(candidates));
    });
    for (Candidates &next : taken) {
      candidates = std::move(next);
      if (failed(rewrite()))
        return failure();
    }
    return numSplit;
  }

private:
  void consider(Operation *op) {
    if (op->getNumResults() != 1)
      return;
    if (auto reduce = dyn_cast<AllReduceOp>(op)) {
      if (auto dim = chooseDim(reduce))
        candidates.insert({reduce, Candidate{op, reduce, *dim}});
      return;
    }
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || !isMemoryEffectFree(op))
      return;
    const Candidate *source = nullptr;
    unsigned index = 0;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (auto it = candidates.find(operand); it != candidates.end()) {
        source = &it->second;
        index = i;
        break;
      }
    if (!source)
      return;
    ShardingRule rule = ruled.getShardingRule();
    const DimFactors &factors = rule.operands[index][source->dim];
    if (factors.size() != 1)
      return;
    Candidate candidate{op, source->origin, -1, factors.front()};
    if (rule.factors[candidate.factor].kind != FactorKind::Parallel ||
        !rule.windows.empty())
      return;
    std::optional<int64_t> dim = getWholeDim(rule.results[0], candidate.factor);
    if (!dim || *dim < 0)
      return;
    candidate.dim = *dim;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      std::optional<int64_t> own =
          getWholeDim(rule.operands[i], candidate.factor);
      if (!own || !isa<RankedTensorType>(operand.getType()))
        return;
      auto it = candidates.find(operand);
      bool fits = it != candidates.end()
                      ? *own == it->second.dim &&
                            isSameGroup(it->second.origin, candidate.origin)
                      : uniformity.isUniform(
                            operand, candidate.origin.getAxes().getAxes());
      if (!fits)
        return;
    }
    candidates.insert({op->getResult(0), candidate});
  }

  static bool isSameGroup(AllReduceOp a, AllReduceOp b) {
    return a.getAxes() == b.getAxes() && a.getMeshAttr() == b.getMeshAttr();
  }

  /// The first dimension, other than the last, that the group size divides.
  static std::optional<int64_t> chooseDim(AllReduceOp op) {
    MeshOp mesh = lookupMesh(op, op.getMeshAttr());
    int64_t ranks = mesh.getAxesSize(op.getAxes().getAxes());
    RankedTensorType type = op.getType();
    for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
      if (type.getDimSize(dim) > 0 && type.getDimSize(dim) % ranks == 0)
        return dim;
    return std::nullopt;
  }

  Candidate *getTaken(Value value) {
    auto it = candidates.find(value);
    return it != candidates.end() && it->second.isTaken ? &it->second : nullptr;
  }

  /// Whether the user takes a block of the value, as chosen so far.
  bool takesBlock(OpOperand &use) {
    Operation *user = use.getOwner();
    return user->getNumResults() == 1 && getTaken(user->getResult(0)) &&
           !isa<AllReduceOp>(user);
  }

  /// Whether a user needs the whole value.
  bool isNeededWhole(Value value) {
    return llvm::any_of(value.getUses(),
                        [&](OpOperand &use) { return !takesBlock(use); });
  }

  /// Bytes of the collectives for the candidate's value; a gather counts as the
  /// size of the value.
  int64_t getBytes(const Candidate &candidate) {
    Value value = candidate.op->getResult(0);
    int64_t size = getTensorBytes(value.getType());
    if (!candidate.isTaken)
      return isa<AllReduceOp>(candidate.op) ? 2 * size : 0;
    return (isa<AllReduceOp>(candidate.op) ? size : 0) +
           (isNeededWhole(value) ? size : 0);
  }

  /// Takes ops out as long as that saves bytes.
  void prune() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (auto &[value, candidate] : llvm::reverse(candidates)) {
        if (!candidate.isTaken)
          continue;
        int64_t change = -getNeighbourhood(candidate);
        candidate.isTaken = false;
        change += getNeighbourhood(candidate);
        // An op without a block among its operands gains nothing.
        bool feeds = isa<AllReduceOp>(candidate.op) ||
                     llvm::any_of(candidate.op->getOperands(),
                                  [&](Value v) { return getTaken(v); });
        if (change < 0 || !feeds)
          changed = true;
        else
          candidate.isTaken = true;
      }
    }
  }

  /// The bytes that depend on the choice for one op.
  int64_t getNeighbourhood(const Candidate &candidate) {
    int64_t bytes = getBytes(candidate);
    if (isa<AllReduceOp>(candidate.op))
      return bytes;
    llvm::SmallPtrSet<Operation *, 4> seen;
    for (Value operand : candidate.op->getOperands())
      if (auto it = candidates.find(operand); it != candidates.end())
        if (seen.insert(it->second.op).second)
          bytes += getBytes(it->second);
    return bytes;
  }

  /// Keeps the connected parts that cost no more than before.
  void takeWorthwhile() {
    llvm::EquivalenceClasses<Operation *> parts;
    for (auto &[value, candidate] : candidates) {
      if (!candidate.isTaken)
        continue;
      parts.insert(candidate.op);
      if (!isa<AllReduceOp>(candidate.op))
        for (Value operand : candidate.op->getOperands())
          if (Candidate *other = getTaken(operand))
            parts.unionSets(candidate.op, other->op);
    }
    struct Sum {
      int64_t before = 0, after = 0;
      bool hasOps = false;
    };
    DenseMap<Operation *, Sum> sums;
    for (auto &[value, candidate] : candidates) {
      if (!candidate.isTaken)
        continue;
      Sum &sum = sums[parts.getLeaderValue(candidate.op)];
      sum.after += getBytes(candidate);
      if (isa<AllReduceOp>(candidate.op))
        sum.before += 2 * getTensorBytes(value.getType());
      else
        sum.hasOps = true;
    }
    for (auto &[value, candidate] : candidates)
      if (candidate.isTaken) {
        const Sum &sum = sums[parts.getLeaderValue(candidate.op)];
        candidate.isTaken = sum.hasOps && sum.after <= sum.before;
      }
  }

  LogicalResult rewrite() {
    SmallVector<Operation *> replaced;
    DenseMap<Value, Value> blocks, gathered;
    for (auto &[value, candidate] : candidates) {
      if (!candidate.isTaken)
        continue;
      OpBuilder builder(candidate.op);
      FailureOr<Value> block = build(builder, candidate, blocks);
      if (failed(block))
        return failure();
      blocks[value] = *block;
      replaced.push_back(candidate.op);
      if (!isNeededWhole(value))
        continue;
      auto gather = createFor<AllGatherOp>(
          {candidate.origin}, builder, candidate.op->getLoc(), value.getType(),
          blocks[value], builder.getI64IntegerAttr(candidate.dim),
          candidate.origin.getMeshAttr(), candidate.origin.getAxes());
      gathered[value] = gather;
    }
    for (auto &[value, candidate] : candidates)
      if (Value whole = gathered.lookup(value))
        value.replaceUsesWithIf(
            whole, [&](OpOperand &use) { return !takesBlock(use); });
    for (Operation *op : llvm::reverse(replaced))
      op->erase();
    return success();
  }

  /// Builds this rank's block of the candidate's result.
  FailureOr<Value> build(OpBuilder &builder, const Candidate &candidate,
                         DenseMap<Value, Value> &blocks) {
    AllReduceOp origin = candidate.origin;
    AxisListAttr axes = origin.getAxes();
    MeshOp mesh = lookupMesh(origin, origin.getMeshAttr());
    int64_t ranks = mesh.getAxesSize(axes.getAxes());
    Location loc = candidate.op->getLoc();
    auto getBlockType = [&](Value whole, int64_t dim) {
      auto type = cast<RankedTensorType>(whole.getType());
      return resize(type, dim, type.getDimSize(dim) / ranks);
    };
    if (auto reduce = dyn_cast<AllReduceOp>(candidate.op)) {
      remarkRewrite(reduce, "SplitBetween",
                    "what follows the all_reduce runs on blocks");
      ++numSplit;
      return createFor<ReduceScatterOp>(
                 {reduce}, builder, loc, getBlockType(reduce, candidate.dim),
                 reduce.getInput(), reduce.getKind(),
                 builder.getI64IntegerAttr(candidate.dim), reduce.getMeshAttr(),
                 axes)
          .getResult();
    }
    auto ruled = cast<ShardingRuleOpInterface>(candidate.op);
    ShardingRule rule = ruled.getShardingRule();
    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(candidate.op->getOperands())) {
      int64_t dim = *getWholeDim(rule.operands[i], candidate.factor);
      if (Value block = blocks.lookup(operand); block && dim >= 0)
        operands.push_back(block);
      else if (dim >= 0)
        operands.push_back(LocalSliceOp::create(
            builder, loc, getBlockType(operand, dim), operand,
            builder.getI64IntegerAttr(dim), origin.getMeshAttr(), axes));
      else
        operands.push_back(operand);
    }
    OpSplit split = getReplicatedSplit(rule, mesh);
    llvm::append_range(split.factorAxes[candidate.factor], axes);
    split.rank = rank;
    FailureOr<SmallVector<Value>> results = ruled.partition(
        builder, operands,
        getBlockType(candidate.op->getResult(0), candidate.dim), split);
    if (failed(results))
      return failure();
    return results->front();
  }

  Uniformity &uniformity;
  using Candidates = llvm::MapVector<Value, Candidate>;
  /// The candidates of one block.
  Candidates candidates;
  int64_t rank = 0;
  unsigned numSplit = 0;
};

} // namespace

FailureOr<unsigned>
collectives::applySequenceParallelism(func::FuncOp program,
                                      Uniformity &uniformity) {
  return SequenceParallelizer(uniformity).run(program);
}
