//===- PairwiseParallel.cpp - PyTorch 2.0's pairs of nn.Linear ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These styles split the nn.Linear modules that a module calls, alternately by
// columns and by rows. If the module calls none, they visit the modules inside
// it, as PyTorch visits named_children(). The data flow gives the order of the
// Linears: one that depends on a Linear split by columns is split by rows, any
// other one by columns. For a plain sequence, this is PyTorch's alternation of
// odd and even ones; parallel projections (query, key, value) are one step. A
// last Linear without a partner isn't split.
//
//===----------------------------------------------------------------------===//

#include "PairwiseParallel.h"
#include "PrepareFunctions.h"
#include "Styles.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

struct LinearChild {
  /// The length of the longest chain of Linears before it.
  unsigned stage = 0;
  /// The Linears that come right after it.
  SmallPtrSet<Operation *, 2> successors;

  bool isColwise() const { return stage % 2 == 0; }
  /// Whether it isn't split because it has no partner.
  bool isWhole() const { return isColwise() && successors.empty(); }
};

using LinearChildren = llvm::MapVector<Operation *, LinearChild>;

} // namespace

static LinearChildren findLinearChildren(ModuleOpInterface module) {
  LinearChildren children;
  // The Linears that each op of the module depends on most directly.
  DenseMap<Operation *, SmallPtrSet<Operation *, 2>> sources;
  for (Operation &op : *module.getBodyBlock()) {
    SmallPtrSet<Operation *, 2> before;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        before.insert_range(sources[producer]);
    auto child = dyn_cast<ModuleOpInterface>(&op);
    std::optional<WeightedModule> weighted;
    if (child)
      weighted = findWeight(child);
    if (!weighted || weighted->isEmbedding) {
      sources[&op] = std::move(before);
      continue;
    }
    LinearChild linear;
    for (Operation *source : before) {
      LinearChild &predecessor = children[source];
      predecessor.successors.insert(&op);
      linear.stage = std::max(linear.stage, predecessor.stage + 1);
    }
    children[&op] = linear;
    sources[&op] = {&op};
  }
  return children;
}

static bool hasLinearPair(const LinearChildren &children) {
  return llvm::any_of(children, [](const auto &child) {
    return !child.second.successors.empty();
  });
}

bool plan::hasLinearPairInside(ModuleOpInterface module) {
  return module
      ->walk([](ModuleOpInterface inner) {
        return hasLinearPair(findLinearChildren(inner))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Splits the Linears in `children`.
static void splitChildren(const LinearChildren &children,
                          const NamedLayout &input, const NamedLayout &output,
                          FileLineColLoc loc, ModuleRequests &requests) {
  for (auto &[op, child] : children) {
    if (child.isWhole())
      continue;
    WeightSplit split{child.isColwise() ? WeightSplit::Kind::Colwise
                                        : WeightSplit::Kind::Rowwise};
    if (child.stage == 0)
      split.declaredInput = input;
    bool isLast = llvm::all_of(child.successors, [&](Operation *successor) {
      return children.find(successor)->second.isWhole();
    });
    if (!child.isColwise() && isLast)
      split.output = output;
    splitWeight(split, loc, requests.addChild(cast<ModuleOpInterface>(op)));
  }
}

void plan::splitPairs(const NamedLayout &input, const NamedLayout &output,
                      FileLineColLoc loc, ModuleRequests &requests) {
  ModuleOpInterface root = requests.getModule();
  if (!hasLinearPairInside(root))
    return requests.reportError(
        loc, requests.getStyle() +
                 " needs two nn.Linear modules, one after the other, which "
                 "neither " +
                 requests.describeModule() + " of class '" +
                 root.getClassName() +
                 "' nor a module inside of it calls; give ColwiseParallel and "
                 "RowwiseParallel to its parts instead");
  requests.setPython("");
  root->walk<WalkOrder::PreOrder>([&](ModuleOpInterface module) {
    LinearChildren children = findLinearChildren(module);
    if (!hasLinearPair(children))
      return WalkResult::advance();
    splitChildren(children, input, output, loc, requests);
    return WalkResult::skip();
  });
}

namespace {

class PairwiseStyle final : public Style {
public:
  PairwiseStyle(StringRef name, StringRef prepareInput, StringRef prepareOutput)
      : name(name),
        specs{{"_prepare_input", ArgumentSpec::Type::Text, prepareInput},
              {"_prepare_output", ArgumentSpec::Type::Text, prepareOutput}} {}

  StringRef getName() const override { return name; }
  ArrayRef<ArgumentSpec> getArguments() const override { return specs; }
  // The style only makes requests for children.
  unsigned getAspects() const override { return 0; }
  LogicalResult verify(const Arguments &arguments,
                       const MeshGroup &group) const override {
    return verifyPrepareFunctions(arguments, group);
  }
  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    splitPairs(*getPreparedLayout(arguments, "_prepare_input"),
               *getPreparedLayout(arguments, "_prepare_output"),
               arguments.getEntryLoc(), requests);
  }

private:
  StringRef name;
  ArgumentSpec specs[2];
};

} // namespace

void plan::addPairwiseStyles(StyleList &styles) {
  // The slides of 2022 have the second name.
  for (StringRef name : {"PairwiseParallel", "PairwiseParallelStyle"})
    styles.push_back(std::make_unique<PairwiseStyle>(
        name, "make_input_replicate_1d", "make_output_tensor"));
  styles.push_back(std::make_unique<PairwiseStyle>(
      "PairwiseSequenceParallel", "make_input_reshard_replicate",
      "make_output_reshard_tensor"));
}
