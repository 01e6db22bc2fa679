//===- SequenceParallel.cpp - norms and dropout on a split sequence -------===//

#include "Styles.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

/// Keeps the module's parameters whole and splits its first input, and what it
/// makes of it, along the sequence. Any module may have it: what its
/// computation needs whole is gathered inside.
class SequenceParallel final : public Style {
public:
  StringRef getName() const override { return "SequenceParallel"; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    using Type = ArgumentSpec::Type;
    static const ArgumentSpec specs[] = {
        {"sequence_dim", Type::Int, "1"},
        {"use_local_output", Type::Bool, "false"},
    };
    return specs;
  }
  unsigned getAspects() const override { return Parameters | Inputs | Outputs; }

  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    nn::ModuleOp module = requests.getModule();
    const Argument &sequenceDim = arguments["sequence_dim"];
    Placement sequence = Placement::shard(sequenceDim.integer);
    if (module.getInputs().empty())
      return requests.reportError(
          arguments.getEntryLoc(),
          "SequenceParallel splits the first input of a module, and " +
              requests.describeModule() + " has no tensor input");

    module.walk([&](nn::ParameterOp parameter) {
      requests.placeParameter(parameter, Placement::replicate(),
                              sequenceDim.loc);
    });
    requests.layoutInput(0, sequence, "sequence_dim", sequenceDim.loc);
    // An output of lower rank has no sequence, say a mean over it.
    for (auto [index, result] : llvm::enumerate(module.getResults())) {
      int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
      if (sequence.dim < rank && sequence.dim >= -rank)
        requests.layoutOutput(index, sequence, "sequence_dim", sequenceDim.loc);
    }
  }
};

} // namespace

std::unique_ptr<Style> plan::createSequenceParallel() {
  return std::make_unique<SequenceParallel>();
}
