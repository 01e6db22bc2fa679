//===- BatchSplit.cpp - Batch and sequence that mesh dimensions split -----===//
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
// 5 and a batch of 4 are merged to 20, the batch is split in five segments. If a
// dimension is divided, its major part is split by as many mesh dimensions as it
// has elements for, and the next part by the others. The batch ends where it is
// contracted or sliced. A cache that is written for each example has the batch,
// too; other buffers that a model writes, such as running statistics, are whole
// over the mesh dimensions of the batch.
//
// The sequence of context parallelism (tp.sequence) is followed in the same way,
// over its own mesh dimensions. An op may name alternatives in its rule:
// attention may be split along its heads instead of the sequence.
//
//===----------------------------------------------------------------------===//

#include "PropagationGraph.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Sharding/SplitInference.h"

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

/// The batches of a dimension in its factors `ofDim`, except those that no factor
/// has alone. `getSize` is the number of ranks of a batch's mesh dimension.
static Batches getOfFactors(const ShardingRule &rule, ArrayRef<unsigned> ofDim,
                            Batches batches,
                            function_ref<int64_t(Batch)> getSize) {
  llvm::sort(batches, [](Batch a, Batch b) { return a.axis < b.axis; });
  // How many blocks each factor is split in so far.
  SmallVector<int64_t> numBlocks(ofDim.size(), 1);
  Batches found;
  for (Batch batch : batches) {
    int64_t numSegments = batch.numSegments;
    size_t i = 0;
    auto size = [&] { return rule.factors[ofDim[i]].size; };
    while (i < ofDim.size() && numSegments > 1 && numSegments >= size() &&
           numSegments % size() == 0)
      numSegments /= rule.factors[ofDim[i++]].size;
    if (i == ofDim.size() || size() % numSegments != 0)
      continue;
    if (numSegments == 1) {
      size_t first = i;
      while (i < ofDim.size() && numBlocks[i] > 1 && numBlocks[i] >= size())
        ++i;
      if (i == ofDim.size())
        i = first;
      numBlocks[i] *= getSize(batch);
    }
    found.push_back({ofDim[i], numSegments, batch.axis});
  }
  return found;
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
      for (bool isSequence : {false, true}) {
        std::optional<int64_t> dim = isSequence
                                         ? getSequenceDim(function, index)
                                         : getBatchDim(function, index);
        if (!dim)
          continue;
        batchDims.resize(values.size());
        for (auto name : function
                             .getArgAttrOfType<ArrayAttr>(
                                 index, isSequence ? kSequenceAttr : kBatchAttr)
                             .getAsRange<StringAttr>()) {
          auto axis = llvm::find_if(batchAxes, [&](BatchAxis axis) {
            return axis.name == name.getValue();
          });
          unsigned number = axis - batchAxes.begin();
          if (axis == batchAxes.end())
            batchAxes.push_back({name.getValue(), isSequence});
          addBatch(batchDims[instance.values.lookup(argument)],
                   {static_cast<unsigned>(*dim), 1, number});
        }
      }
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
  auto getSize = [&](Batch batch) {
    return mesh.getAxisSize(
        AxisRefAttr::get(meshRef.getContext(), batchAxes[batch.axis].name));
  };
  for (auto [i, operand] : llvm::enumerate(node.operands)) {
    if (operand == kNoValue)
      continue;
    for (auto [dim, ofDim] : llvm::enumerate(getTensor(rule.operands, i))) {
      if (rule.getWindow(/*isResult=*/false, i, dim))
        continue;
      Batches own;
      llvm::copy_if(batchDims[operand], std::back_inserter(own),
                    [&](Batch batch) { return batch.index == dim; });
      for (Batch batch : getOfFactors(rule, ofDim, own, getSize))
        addBatch(factors, batch);
    }
  }
  if (factors.empty())
    return changed;
  for (auto [i, result] : llvm::enumerate(node.results)) {
    Batches dims;
    for (auto [dim, ofDim] : llvm::enumerate(getTensor(rule.results, i))) {
      // A factor that other mesh dimensions split completely doesn't repeat what
      // is minor to it.
      int64_t major = 1;
      for (unsigned factor : ofDim) {
        int64_t numBlocks = 1;
        for (Batch batch : factors) {
          if (batch.index != factor ||
              rule.getWindow(/*isResult=*/true, i, dim))
            continue;
          addBatch(dims, {static_cast<unsigned>(dim), major * batch.numSegments,
                          batch.axis});
          if (batch.numSegments == 1)
            numBlocks *= getSize(batch);
        }
        if (numBlocks == 1 || numBlocks < rule.factors[factor].size)
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

/// The factors that the mesh dimension `axis` may split in `node`.
Batches Graph::getSplitFactors(const Node &node, unsigned axis) const {
  const ShardingRule &rule = space.getRule(node.rule);
  Batches own;
  for (Batch batch : getBatchFactors(node)) {
    if (batch.axis != axis)
      continue;
    addBatch(own, batch);
    for (auto [factor, other] : rule.alternatives)
      if (factor == batch.index && batchAxes[axis].isSequence)
        addBatch(own, {other, 1, axis});
  }
  return own;
}

std::vector<SplitChoice> Graph::getAlternativeChoices(const Node &node) const {
  std::vector<SplitChoice> choices;
  const ShardingRule &rule = space.getRule(node.rule);
  if (rule.alternatives.empty() || getBatchFactors(node).empty())
    return choices;
  for (auto [number, axis] : llvm::enumerate(batchAxes)) {
    if (!axis.isSequence)
      continue;
    // A mesh dimension may have more ranks than the major factor of a product,
    // such as the heads that a group shares.
    auto whole = AxisRefAttr::get(meshRef.getContext(), axis.name);
    SmallVector<AxisRefAttr> axes = {whole};
    for (const DimFactors &dim : rule.operands.front())
      if (llvm::any_of(rule.alternatives, [&](auto alternative) {
            return llvm::is_contained(dim, alternative.second);
          }))
        collectParts(rule, dim, mesh, whole, /*before=*/1, axes);
    for (AxisRefAttr part : axes)
      for (Batch batch : getSplitFactors(node, number))
        if (rule.factors[batch.index].kind != FactorKind::Whole &&
            batch.numSegments == 1)
          choices.push_back({part, /*isLinear=*/false, batch.index, {}});
  }
  return choices;
}

/// Whether `split` divides `factors` by all ranks of the mesh dimension `name`.
static bool isSplitByAll(const OpSplit &split, const Batches &factors,
                         StringRef name) {
  MeshOp mesh = split.mesh;
  int64_t numRanks = 1;
  for (Batch batch : factors)
    for (AxisRefAttr axis : split.factorAxes[batch.index])
      if (axis.getName() == name)
        numRanks *= mesh.getAxisSize(axis);
  return numRanks ==
         mesh.getAxisSize(AxisRefAttr::get(mesh.getContext(), name));
}

LogicalResult Graph::verifyAlternatives(
    llvm::function_ref<const Strategy &(unsigned)> getStrategy) const {
  for (auto [index, node] : llvm::enumerate(nodes)) {
    if (!node.op || node.kind != Node::Compute ||
        space.getRule(node.rule).alternatives.empty())
      continue;
    for (auto [number, axis] : llvm::enumerate(batchAxes)) {
      Batches factors = getSplitFactors(node, number);
      if (!axis.isSequence || factors.empty() ||
          isSplitByAll(getStrategy(index).split, factors, axis.name))
        continue;
      return node.op->emitError()
             << "'" << node.op->getName() << "' can't be split over '"
             << axis.name
             << "': it is split along other dimensions than the sequence, and "
                "beside the other mesh dimensions these aren't divisible; "
                "context methods that split the sequence are all_gather and "
                "ring";
    }
  }
  return success();
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
  if (getBatchFactors(node).empty())
    return;
  const ShardingRule &rule = space.getRule(node.rule);
  for (auto [number, axis] : llvm::enumerate(batchAxes)) {
    Batches factors = getSplitFactors(node, number);
    StringRef name = axis.name;
    auto isOver = [&](const SplitChoice &choice) {
      return choice.axis.getName() == name;
    };
    // An alternative may have too few elements for the whole mesh dimension.
    auto isPossible = [&](const SplitChoice &choice) {
      return rule.alternatives.empty() ||
             canSplit(rule, getReplicatedSplit(rule, mesh), choice.index,
                      choice.axis);
    };
    auto isAlong = [&](const SplitChoice &choice, bool mayBePart) {
      return isOver(choice) && !choice.isLinear &&
             (mayBePart || choice.axis.isWhole()) && isPossible(choice) &&
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
              return llvm::any_of(batchAxes, [&](BatchAxis own) {
                return own.name == axis.getName();
              });
            }))
          kept.reset(i);
  for (auto [number, axis] : llvm::enumerate(batchAxes)) {
    StringRef name = axis.name;
    if (!isDecided(node, name))
      continue;
    Batches own = getSplitFactors(node, number);
    auto isAlong = [&](const OpSplit &split, bool mayBePart) {
      return llvm::any_of(own, [&](Batch batch) {
        return llvm::any_of(split.factorAxes[batch.index],
                            [&](AxisRefAttr part) {
                              return part.getName() == name &&
                                     (mayBePart || part.isWhole());
                            }) &&
               split.factorSegments[batch.index] == getSegments(rule, batch);
      });
    };
    // Prefers the whole mesh dimension: split over only a part of it, several
    // ranks would compute the same. Alternatives may split parts that make up
    // the whole.
    bool hasAlternatives = axis.isSequence && !rule.alternatives.empty();
    for (bool mayBePart : {false, true}) {
      llvm::BitVector split(kept.size());
      for (unsigned strategy : kept.set_bits()) {
        const OpSplit &each = domain->strategies[strategy].split;
        if (hasAlternatives ? isSplitByAll(each, own, name)
                            : isAlong(each, mayBePart))
          split.set(strategy);
      }
      if (split.none())
        continue;
      kept = split;
      break;
    }
  }
  return kept.all() ? domain : space.getPart(domain, kept);
}
