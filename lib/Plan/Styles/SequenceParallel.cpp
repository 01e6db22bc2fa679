//===- SequenceParallel.cpp - Norms and dropout on a split sequence -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PairwiseParallel.h"
#include "PrepareFunctions.h"
#include "Styles.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

/// Replicates the module's parameters, and splits its first input and its
/// outputs along the sequence. Any module may have the style: tensors that its
/// computation needs whole are gathered inside.
class SequenceParallel final : public Style {
public:
  StringRef getName() const override { return "SequenceParallel"; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    using Type = ArgumentSpec::Type;
    static const ArgumentSpec specs[] = {
        {"sequence_dim", Type::Int, "1"},
        {"use_local_output", Type::Bool, "false"},
        {"_prepare_input", Type::Text},
        {"_prepare_output", Type::Text},
    };
    return specs;
  }
  unsigned getAspects() const override { return Parameters | Inputs | Outputs; }

  LogicalResult verify(const Arguments &arguments,
                       const MeshGroup &group) const override {
    return verifyPrepareFunctions(arguments, group);
  }

  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    ModuleOpInterface module = requests.getModule();
    const Argument &sequenceDim = arguments["sequence_dim"];
    // In PyTorch 2.0, the style of this name is another one, for modules that
    // call pairs of nn.Linear; today's is for norms and dropout.
    if (!sequenceDim.given && hasLinearPairInside(module)) {
      FileLineColLoc loc = arguments.getEntryLoc();
      NamedLayout sequence{Placement::shard(0), "_prepare_input", loc};
      NamedLayout output{Placement::shard(0), "_prepare_output", loc};
      return splitPairs(
          getPreparedLayout(arguments, "_prepare_input").value_or(sequence),
          getPreparedLayout(arguments, "_prepare_output").value_or(output), loc,
          requests);
    }
    Placement sequence = Placement::shard(sequenceDim.integer);
    if (module.getInputs().empty())
      return requests.reportError(
          arguments.getEntryLoc(),
          "SequenceParallel splits the first input of a module, and " +
              requests.describeModule() + " has no tensor input");

    module.walk([&](ParameterOpInterface parameter) {
      requests.placeParameter(parameter, Placement::replicate(),
                              sequenceDim.loc);
    });
    requests.layoutInput(0, sequence, "sequence_dim", sequenceDim.loc,
                         /*declared=*/true);
    // An output of lower rank, such as a mean over the sequence, has none.
    for (auto [index, result] : llvm::enumerate(module->getResults())) {
      int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
      if (sequence.dim < rank && sequence.dim >= -rank)
        requests.layoutOutput(index, sequence, "sequence_dim", sequenceDim.loc);
    }
  }
};

} // namespace

void plan::addSequenceStyles(StyleList &styles) {
  styles.push_back(std::make_unique<SequenceParallel>());
}
