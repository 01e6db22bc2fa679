//===- LinearStyles.cpp - ColwiseParallel, RowwiseParallel ----------------===//
//
// Both split the weight of one nn.Linear or nn.Embedding. A module counts as
// one by what it holds rather than by its class name, so that subclasses count
// as well: a single nn.linear or nn.embedding with a parameter as its weight,
// and no submodules.
//
//===----------------------------------------------------------------------===//

#include "Styles.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

struct WeightedModule {
  bool isEmbedding = false;
  nn::ParameterOp weight;
  SmallVector<nn::ParameterOp> biases;
};

/// The op that `value` comes from, seen through changes of its element type.
Operation *getSource(Value value) {
  Operation *op = value.getDefiningOp();
  while (auto cast = dyn_cast_if_present<nn::CastOp>(op))
    op = cast.getInput().getDefiningOp();
  return op;
}

std::optional<WeightedModule> findWeight(nn::ModuleOp module) {
  Operation *lookup = nullptr;
  WeightedModule found;
  for (Operation &op : *module.getBodyBlock()) {
    if (isa<nn::ModuleOp>(op))
      return std::nullopt;
    if (!isa<nn::LinearOp, nn::EmbeddingOp>(op))
      continue;
    if (lookup)
      return std::nullopt;
    lookup = &op;
    found.isEmbedding = isa<nn::EmbeddingOp>(op);
    found.weight =
        dyn_cast_if_present<nn::ParameterOp>(getSource(op.getOperand(1)));
  }
  if (!found.weight)
    return std::nullopt;
  for (auto add : module.getBodyBlock()->getOps<nn::AddOp>()) {
    Operation *lhs = getSource(add.getLhs()), *rhs = getSource(add.getRhs());
    Operation *other = lhs == lookup ? rhs : rhs == lookup ? lhs : nullptr;
    if (auto bias = dyn_cast_if_present<nn::ParameterOp>(other))
      if (bias.getType().getRank() == 1)
        found.biases.push_back(bias);
  }
  return found;
}

class WeightStyle : public Style {
public:
  unsigned getAspects() const override { return Parameters | Inputs | Outputs; }

  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    nn::ModuleOp module = requests.getModule();
    FileLineColLoc loc = arguments.getEntryLoc();
    std::optional<WeightedModule> weighted = findWeight(module);
    if (!weighted)
      return requests.reportError(
          loc, getName() + " can't shard " + requests.describeModule() +
                   " of class '" + module.getClassName() +
                   "'; it shards nn.Linear and nn.Embedding");
    // A traced module may return more than its output: whatever of its inside
    // the model uses elsewhere.
    if (module.getInputs().empty() || module.getNumResults() == 0)
      return requests.reportError(loc, getName() +
                                           " needs a tensor input and output, "
                                           "which " +
                                           requests.describeModule() +
                                           " lacks");

    requests.placeParameter(weighted->weight,
                            getWeightPlacement(weighted->isEmbedding), loc);
    for (nn::ParameterOp bias : weighted->biases)
      requests.placeParameter(bias, getBiasPlacement(), loc);

    const Argument &declared = arguments["input_layouts"];
    requests.layoutInput(0, declared.getPlacement(), "input_layouts",
                         declared.loc);
    Placement desired = getDesiredInput(weighted->isEmbedding);
    if (desired != declared.getPlacement())
      requests.layoutInput(0, desired, "desired_input_layouts", declared.loc);
    const Argument &output = arguments["output_layouts"];
    requests.layoutOutput(0, output.getPlacement(), "output_layouts",
                          output.loc);
  }

private:
  virtual Placement getWeightPlacement(bool isEmbedding) const = 0;
  virtual Placement getBiasPlacement() const = 0;
  /// The input that the split computation needs.
  virtual Placement getDesiredInput(bool isEmbedding) const = 0;
};

class ColwiseParallel final : public WeightStyle {
public:
  StringRef getName() const override { return "ColwiseParallel"; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    using Type = ArgumentSpec::Type;
    static const ArgumentSpec specs[] = {
        {"input_layouts", Type::Layout, "Replicate"},
        {"output_layouts", Type::Layout, "Shard(-1)"},
        {"use_local_output", Type::Bool, "true"},
    };
    return specs;
  }

private:
  Placement getWeightPlacement(bool isEmbedding) const override {
    return Placement::shard(isEmbedding ? 1 : 0);
  }
  Placement getBiasPlacement() const override { return Placement::shard(0); }
  Placement getDesiredInput(bool) const override {
    return Placement::replicate();
  }
};

class RowwiseParallel final : public WeightStyle {
public:
  StringRef getName() const override { return "RowwiseParallel"; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    using Type = ArgumentSpec::Type;
    static const ArgumentSpec specs[] = {
        {"input_layouts", Type::Layout, "Shard(-1)"},
        {"output_layouts", Type::Layout, "Replicate"},
        {"use_local_output", Type::Bool, "true"},
    };
    return specs;
  }

private:
  Placement getWeightPlacement(bool isEmbedding) const override {
    return Placement::shard(isEmbedding ? 0 : 1);
  }
  Placement getBiasPlacement() const override { return Placement::replicate(); }
  Placement getDesiredInput(bool isEmbedding) const override {
    return isEmbedding ? Placement::replicate() : Placement::shard(-1);
  }
};

} // namespace

std::unique_ptr<Style> plan::createColwiseParallel() {
  return std::make_unique<ColwiseParallel>();
}

std::unique_ptr<Style> plan::createRowwiseParallel() {
  return std::make_unique<RowwiseParallel>();
}
