//===- BatchSplit.cpp - What data parallelism decides ---------------------===//
//
// Over the mesh dimensions that split the batch (tp.batch of arguments) there
// is nothing to choose for an op that depends on it: it runs split along the
// batch. So examples stay where they are, in the backward pass too, and what
// else comes to an op is whole: parameters that FSDP splits are gathered, and
// their gradients are Partial. The least communication would often be another:
// to gather the activations of a small batch, and to compute all of it on every
// rank.
//
// The batch is followed through the ops' rules, as the major factor of a
// dimension. It ends where it is contracted, sliced, or merged with a dimension
// that is major to it.
//
//===----------------------------------------------------------------------===//

#include "PropagationGraph.h"
#include "tp/Dialect/TP/Batch.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

void Graph::followBatch() {
  for (const Instance &instance : instances) {
    func::FuncOp function = instance.function;
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      std::optional<int64_t> dim = getBatchDim(function, index);
      if (!dim)
        continue;
      batchDims.resize(values.size());
      batchDims[instance.values.lookup(argument)] |= DimSet(1) << *dim;
      for (auto name : function.getArgAttrOfType<ArrayAttr>(index, kBatchAttr)
                           .getAsRange<StringAttr>())
        if (!llvm::is_contained(batchAxes, name.getValue()))
          batchAxes.push_back(name.getValue());
    }
  }
  if (batchAxes.empty())
    return;
  batchFactors.resize(nodes.size());
  // Once, and again for what flows back around loops.
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t node = 0; node < nodes.size(); ++node)
      changed |= followBatchThrough(node);
  }
}

/// Whether the dimensions of a result changed.
bool Graph::followBatchThrough(size_t index) {
  const Node &node = nodes[index];
  // A parameter takes what it will be in the next run.
  if (isa_and_nonnull<nn::ParameterOp>(node.op))
    return false;
  bool changed = false;
  auto getDims = [&](unsigned value) {
    return value == kNoValue ? DimSet() : batchDims[value];
  };
  auto add = [&](unsigned value, DimSet dims) {
    if (value == kNoValue || (batchDims[value] | dims) == batchDims[value])
      return;
    batchDims[value] |= dims;
    changed = true;
  };
  // What is fixed passes its operand on, if it gives anything.
  if (node.kind == Node::Fixed) {
    for (unsigned operand : node.operands)
      for (unsigned result : node.results)
        add(result, getDims(operand));
    return changed;
  }
  const ShardingRule &rule = space.getRule(node.rule);
  // What only passes values on has one tensor for all.
  auto getTensor = [&](ArrayRef<TensorFactors> tensors,
                       size_t i) -> const TensorFactors & {
    return tensors[std::min(i, tensors.size() - 1)];
  };
  auto forEachMajor = [&](bool isResult, size_t i, auto function) {
    for (auto [dim, ofDim] :
         llvm::enumerate(getTensor(isResult ? rule.results : rule.operands, i)))
      if (!ofDim.empty() && ofDim.front() < kMaxBatchFactors &&
          dim < kMaxBatchFactors && !rule.getWindow(isResult, i, dim))
        function(dim, ofDim.front());
  };
  DimSet &factors = batchFactors[index];
  for (auto [i, operand] : llvm::enumerate(node.operands))
    if (DimSet dims = getDims(operand))
      forEachMajor(/*isResult=*/false, i, [&](size_t dim, unsigned factor) {
        if (dims >> dim & 1)
          factors |= DimSet(1) << factor;
      });
  if (!factors)
    return changed;
  for (auto [i, result] : llvm::enumerate(node.results)) {
    DimSet dims = 0;
    forEachMajor(/*isResult=*/true, i, [&](size_t dim, unsigned factor) {
      dims |= (factors >> factor & 1) << dim;
    });
    add(result, dims);
  }
  return changed;
}

/// The batch's factors in the rule of `node`; none where there is a choice.
Graph::DimSet Graph::getBatchFactors(const Node &node) const {
  return batchFactors.empty() ? 0 : batchFactors[&node - nodes.data()];
}

/// Whether data parallelism decides over mesh dimension `axis` for `node`.
static bool isDecided(const Node &node, StringRef axis) {
  // A plan may say otherwise.
  auto redistribute = dyn_cast_or_null<RedistributeOp>(node.op);
  return !redistribute || !redistribute.getOverAttr() ||
         llvm::none_of(redistribute.getOverAttr(), [&](AxisRefAttr over) {
           return over.getName() == axis;
         });
}

void Graph::keepBatch(const Node &node,
                      std::vector<SplitChoice> &choices) const {
  DimSet factors = getBatchFactors(node);
  if (!factors)
    return;
  for (StringRef axis : batchAxes) {
    auto isAlong = [&](const SplitChoice &choice) {
      return !choice.isLinear && choice.index < kMaxBatchFactors &&
             (factors >> choice.index & 1);
    };
    auto isOver = [&](const SplitChoice &choice) {
      return choice.axis.getName() == axis;
    };
    if (llvm::any_of(choices, [&](const SplitChoice &choice) {
          return isOver(choice) && isAlong(choice);
        }))
      llvm::erase_if(choices, [&](const SplitChoice &choice) {
        return isOver(choice) && !isAlong(choice);
      });
  }
}

const Domain *Graph::keepBatch(const Node &node, const Domain *domain) const {
  DimSet factors = getBatchFactors(node);
  if (!factors || domain->strategies.size() == 1)
    return domain;
  llvm::BitVector kept(domain->strategies.size(), true);
  for (StringRef axis : batchAxes) {
    if (!isDecided(node, axis))
      continue;
    llvm::BitVector split(kept.size());
    for (unsigned strategy : kept.set_bits())
      for (auto [factor, axes] :
           llvm::enumerate(domain->strategies[strategy].split.factorAxes))
        if (factor < kMaxBatchFactors && (factors >> factor & 1) &&
            llvm::any_of(
                axes, [&](AxisRefAttr own) { return own.getName() == axis; }))
          split.set(strategy);
    if (split.any())
      kept = split;
  }
  return kept.all() ? domain : space.getPart(domain, kept);
}
