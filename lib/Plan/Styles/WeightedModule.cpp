//===- WeightedModule.cpp - Modules around one weight ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WeightedModule.h"
#include "tp/Dialect/NN/NN.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// The op that defines `value`, looking through changes of its element type.
static Operation *getSource(Value value) {
  Operation *op = value.getDefiningOp();
  while (auto cast = dyn_cast_if_present<nn::CastOp>(op))
    op = cast.getInput().getDefiningOp();
  return op;
}

std::optional<WeightedModule> plan::findWeight(ModuleOpInterface module) {
  Operation *lookup = nullptr;
  WeightedModule found;
  for (Operation &op : *module.getBodyBlock()) {
    if (isa<ModuleOpInterface>(op))
      return std::nullopt;
    if (!isa<nn::LinearOp, nn::EmbeddingOp>(op))
      continue;
    if (lookup)
      return std::nullopt;
    lookup = &op;
    found.isEmbedding = isa<nn::EmbeddingOp>(op);
    found.weight =
        dyn_cast_if_present<ParameterOpInterface>(getSource(op.getOperand(1)));
  }
  if (!found.weight)
    return std::nullopt;
  for (auto add : module.getBodyBlock()->getOps<nn::AddOp>()) {
    Operation *lhs = getSource(add.getLhs()), *rhs = getSource(add.getRhs());
    Operation *other = lhs == lookup ? rhs : rhs == lookup ? lhs : nullptr;
    if (auto bias = dyn_cast_if_present<ParameterOpInterface>(other))
      if (bias.getType().getRank() == 1)
        found.biases.push_back(bias);
  }
  return found;
}

Placement WeightSplit::getShard(int64_t dim) const {
  Placement shard = Placement::stridedShard(dim, blocks);
  shard.segments = segments;
  return shard;
}

std::string plan::printPython(const Placement &placement) {
  if (placement.isReplicate())
    return "Replicate()";
  if (placement.isPartial())
    return ("Partial(\"" + stringifyReductionKind(placement.reduction) + "\")")
        .str();
  return placement.str();
}

/// What a plan can split instead: ", here 'net1', 'net2'", at most eight
/// modules, or the module's own parameters.
static std::string suggestInstead(ModuleOpInterface module) {
  constexpr size_t kMaxNames = 8;
  llvm::SmallSetVector<StringRef, 8> names;
  module.getBody().walk([&](ModuleOpInterface inner) {
    if (findWeight(inner))
      names.insert(inner.getFqn());
  });
  if (names.empty()) {
    for (ParameterOpInterface parameter :
         module.getBody().getOps<ParameterOpInterface>())
      return "; a plan can place parameters of other modules by name: " +
             parameter.getFqn().str() + ": [Shard(0)]";
    return "";
  }
  std::string text;
  for (StringRef name : names.getArrayRef().take_front(kMaxNames))
    text += (text.empty() ? "'" : ", '") + name.str() + "'";
  return ", here " + text + (names.size() > kMaxNames ? ", …" : "");
}

/// PyTorch's own style with the same effect; empty for a packed weight, which
/// PyTorch can't split.
static std::string getPython(const WeightSplit &split,
                             const Placement &declared, bool isEmbedding,
                             const Placement &output) {
  if (split.isPacked())
    return "";
  bool colwise = split.isColwise();
  SmallVector<std::string> arguments;
  if (declared != (colwise ? Placement::replicate() : Placement::shard(-1)))
    arguments.push_back("input_layouts=" + printPython(declared));
  if (output != (colwise ? Placement::shard(-1) : Placement::replicate()))
    arguments.push_back("output_layouts=" + printPython(output));
  return (colwise ? "ColwiseParallel(" : "RowwiseParallel(") +
         llvm::join(arguments, ", ") + ")";
}

void plan::splitWeight(const WeightSplit &split, FileLineColLoc loc,
                       ModuleRequests &requests) {
  ModuleOpInterface module = requests.getModule();
  StringRef style = requests.getStyle();
  std::optional<WeightedModule> weighted = findWeight(module);
  if (!weighted)
    return requests.reportError(loc, style + " can't shard " +
                                         requests.describeModule() +
                                         " of class '" + module.getClassName() +
                                         "'; it shards nn.Linear and "
                                         "nn.Embedding" +
                                         suggestInstead(module));
  // A traced module may return more than its output: it also returns inner
  // values that the model uses elsewhere.
  if (module->getNumResults() == 0)
    return requests.reportError(loc, style + " needs a tensor output, which " +
                                         requests.describeModule() + " lacks");
  // nn.Linear's weight is (out, in), nn.Embedding's (rows, columns).
  bool isEmbedding = weighted->isEmbedding, colwise = split.isColwise();
  requests.placeParameter(weighted->weight,
                          split.getShard(colwise == isEmbedding), loc);
  for (ParameterOpInterface bias : weighted->biases)
    requests.placeParameter(
        bias, colwise ? split.getShard(0) : Placement::replicate(), loc);

  Placement desired =
      colwise || isEmbedding ? Placement::replicate() : split.getShard(-1);
  NamedLayout declared =
      split.declaredInput.value_or(NamedLayout{desired, "input_layouts", loc});
  NamedLayout output = split.output.value_or(
      NamedLayout{colwise ? split.getShard(-1) : Placement::replicate(),
                  "output_layouts", loc});
  // A constant, such as the positions of a sequence, is no input: each rank has
  // it.
  bool hasInput = !module.getInputs().empty();
  if (!hasInput && declared.placement != Placement::replicate())
    return requests.reportError(
        declared.loc, declared.argument + " is " + declared.placement.str() +
                          ", but " + requests.describeModule() +
                          " takes a constant, which each rank has: write " +
                          declared.argument + ": Replicate");
  if (hasInput)
    requests.layoutInput(0, declared.placement, declared.argument, declared.loc,
                         /*declared=*/true);
  if (hasInput && desired != declared.placement)
    requests.layoutInput(0, desired, "desired_input_layouts", declared.loc);
  requests.layoutOutput(0, output.placement, output.argument, output.loc);
  requests.setPython(
      getPython(split, declared.placement, isEmbedding, output.placement));
}

void plan::splitParameter(ParameterOpInterface parameter,
                          const WeightSplit &split, FileLineColLoc loc,
                          ModuleRequests &requests) {
  bool colwise = split.isColwise();
  int64_t rank = parameter.getType().getRank();
  if (rank == 0)
    return requests.placeParameter(parameter, Placement::replicate(), loc);
  if (rank == 1)
    return requests.placeParameter(
        parameter, colwise ? split.getShard(0) : Placement::replicate(), loc);
  bool isEmbedding = llvm::any_of(parameter->getUsers(), [](Operation *user) {
    return isa<nn::EmbeddingOp>(user);
  });
  requests.placeParameter(
      parameter, split.getShard(colwise == isEmbedding ? -1 : -2), loc);
}
