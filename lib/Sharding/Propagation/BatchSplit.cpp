//===- BatchSplit.cpp - Batch of data parallelism -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An op that depends on the batch has no choice over the mesh dimensions that
// split the batch (tp.batch of arguments): it runs split along the batch.
// Examples therefore stay on their ranks, in the backward pass too, and the
// op's other operands are whole over these mesh dimensions: parameters that
// FSDP splits are gathered, and their gradients are Partial. Communication
// alone would often favor another choice: to gather the activations of a small
// batch and to compute all of it on every rank.
//
// The batch is followed through the ops' rules, as a factor of a dimension. A
// part of the dimension that is major to the batch repeats it: if a sequence of
// 5 and a batch of 4 are merged to 20, the batch is split in five segments. The
// batch ends where it is contracted or sliced. A cache that is written for each
// example has the batch, too; other buffers that a model writes, such as running
// statistics, are whole over the mesh dimensions of the batch.
//
//===----------------------------------------------------------------------===//

#include "PropagationGraph.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Fsdp.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// Returns whether `batch` is new.
static bool addBatch(Batches &batches, Batch batch) {
  if (llvm::is_contained(batches, batch))
    return false;
  batches.push_back(batch);
  return true;
}

/// The batch in one of the factors of a dimension, in which it is repeated
/// `numSegments` times; nullopt unless one factor has it alone.
static std::optional<Batch> getOfFactor(const ShardingRule &rule,
                                        ArrayRef<unsigned> ofDim,
                                        int64_t numSegments) {
  for (unsigned factor : ofDim) {
    int64_t size = rule.factors[factor].size;
    if (numSegments == 1 || numSegments < size)
      return size % numSegments == 0
                 ? std::optional<Batch>({factor, numSegments})
                 : std::nullopt;
    if (numSegments % size != 0)
      return std::nullopt;
    numSegments /= size;
  }
  return std::nullopt;
}

/// The segments in which a factor is split along `batch`; empty if it is split
/// as a whole.
static SmallVector<int64_t> getSegments(const ShardingRule &rule, Batch batch) {
  if (batch.numSegments == 1)
    return {};
  return SmallVector<int64_t>(
      batch.numSegments, rule.factors[batch.index].size / batch.numSegments);
}

void Graph::followBatch() {
  for (const Instance &instance : instances) {
    func::FuncOp function = instance.function;
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      std::optional<int64_t> dim = getBatchDim(function, index);
      if (!dim)
        continue;
      batchDims.resize(values.size());
      addBatch(batchDims[instance.values.lookup(argument)],
               {static_cast<unsigned>(*dim), 1});
      for (auto name : function.getArgAttrOfType<ArrayAttr>(index, kBatchAttr)
                           .getAsRange<StringAttr>())
        if (!llvm::is_contained(batchAxes, name.getValue()))
          batchAxes.push_back(name.getValue());
    }
  }
  if (batchAxes.empty())
    return;
  batchFactors.resize(nodes.size());
  // Repeats for values that flow back around loops.
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t node = 0; node < nodes.size(); ++node)
      changed |= followBatchThrough(node);
  }
}

static bool isParameter(const Node &node) {
  return isa_and_nonnull<ParameterOpInterface>(node.op);
}

/// Returns whether the batch dimensions of a result changed.
bool Graph::followBatchThrough(size_t index) {
  const Node &node = nodes[index];
  // A parameter that is placed stays so, whatever its next value is.
  if (isParameter(node) && node.kind == Node::Fixed)
    return false;
  bool changed = false;
  auto add = [&](unsigned value, const Batches &batches) {
    if (value != kNoValue)
      for (Batch batch : batches)
        changed |= addBatch(batchDims[value], batch);
  };
  // A fixed node passes its operand on, if it has results.
  if (node.kind == Node::Fixed) {
    for (unsigned operand : node.operands)
      for (unsigned result : node.results)
        if (operand != kNoValue)
          add(result, batchDims[operand]);
    return changed;
  }
  const ShardingRule &rule = space.getRule(node.rule);
  // A node that only passes values on has one tensor for all of them.
  auto getTensor = [&](ArrayRef<TensorFactors> tensors,
                       size_t i) -> const TensorFactors & {
    return tensors[std::min(i, tensors.size() - 1)];
  };
  Batches &factors = batchFactors[index];
  for (auto [i, operand] : llvm::enumerate(node.operands)) {
    if (operand == kNoValue)
      continue;
    for (auto [dim, numSegments] : batchDims[operand])
      if (!rule.getWindow(/*isResult=*/false, i, dim))
        if (std::optional<Batch> batch = getOfFactor(
                rule, getTensor(rule.operands, i)[dim], numSegments))
          addBatch(factors, *batch);
  }
  if (factors.empty())
    return changed;
  for (auto [i, result] : llvm::enumerate(node.results)) {
    Batches dims;
    for (auto [dim, ofDim] : llvm::enumerate(getTensor(rule.results, i))) {
      int64_t major = 1;
      for (unsigned factor : ofDim) {
        for (auto [own, numSegments] : factors)
          if (own == factor && !rule.getWindow(/*isResult=*/true, i, dim))
            addBatch(dims, {static_cast<unsigned>(dim), major * numSegments});
        major *= rule.factors[factor].size;
      }
    }
    add(result, dims);
  }
  return changed;
}

/// The batch factors in the rule of `node`; empty if it doesn't depend on the
/// batch.
ArrayRef<Batch> Graph::getBatchFactors(const Node &node) const {
  return batchFactors.empty() ? ArrayRef<Batch>()
                              : batchFactors[&node - nodes.data()];
}

/// Whether data parallelism decides over mesh dimension `axis` for `node`.
static bool isDecided(const Node &node, StringRef axis) {
  // A redistribution of a plan may decide otherwise.
  auto redistribute = dyn_cast_or_null<RedistributeOp>(node.op);
  return !redistribute || !redistribute.getOverAttr() ||
         llvm::none_of(redistribute.getOverAttr(), [&](AxisRefAttr over) {
           return over.getName() == axis;
         });
}

void Graph::keepBatch(const Node &node,
                      std::vector<SplitChoice> &choices) const {
  ArrayRef<Batch> factors = getBatchFactors(node);
  if (factors.empty())
    return;
  const ShardingRule &rule = space.getRule(node.rule);
  for (StringRef axis : batchAxes) {
    auto isOver = [&](const SplitChoice &choice) {
      return choice.axis.getName() == axis;
    };
    auto isAlong = [&](const SplitChoice &choice, bool mayBePart) {
      return isOver(choice) && !choice.isLinear &&
             (mayBePart || choice.axis.isWhole()) &&
             llvm::any_of(factors, [&](Batch batch) {
               return batch.index == choice.index &&
                      ArrayRef<int64_t>(choice.segments) ==
                          ArrayRef<int64_t>(getSegments(rule, batch));
             });
    };
    for (bool mayBePart : {false, true}) {
      if (llvm::none_of(choices, [&](const SplitChoice &choice) {
            return isAlong(choice, mayBePart);
          }))
        continue;
      llvm::erase_if(choices, [&](const SplitChoice &choice) {
        return isOver(choice) && !isAlong(choice, mayBePart);
      });
      break;
    }
  }
}

const Domain *Graph::keepBatch(const Node &node, const Domain *domain) const {
  ArrayRef<Batch> factors = getBatchFactors(node);
  bool isBuffer = isParameter(node) && node.op->hasAttr(kBufferAttr);
  if ((factors.empty() && !isBuffer) || domain->strategies.size() == 1)
    return domain;
  const ShardingRule &rule = space.getRule(node.rule);
  llvm::BitVector kept(domain->strategies.size(), true);
  if (factors.empty())
    for (auto [i, strategy] : llvm::enumerate(domain->strategies))
      for (ArrayRef<AxisRefAttr> axes : strategy.split.factorAxes)
        if (llvm::any_of(axes, [&](AxisRefAttr axis) {
              return llvm::is_contained(batchAxes, axis.getName());
            }))
          kept.reset(i);
  for (StringRef axis : batchAxes) {
    if (!isDecided(node, axis))
      continue;
    auto isAlong = [&](const OpSplit &split, bool mayBePart) {
      return llvm::any_of(factors, [&](Batch batch) {
        return llvm::any_of(split.factorAxes[batch.index],
                            [&](AxisRefAttr own) {
                              return own.getName() == axis &&
                                     (mayBePart || own.isWhole());
                            }) &&
               split.factorSegments[batch.index] == getSegments(rule, batch);
      });
    };
    // Prefers the whole mesh dimension: split over only a part of it, several
    // ranks would compute the same.
    for (bool mayBePart : {false, true}) {
      llvm::BitVector split(kept.size());
      for (unsigned strategy : kept.set_bits())
        if (isAlong(domain->strategies[strategy].split, mayBePart))
          split.set(strategy);
      if (split.none())
        continue;
      kept = split;
      break;
    }
  }
  return kept.all() ? domain : space.getPart(domain, kept);
}
