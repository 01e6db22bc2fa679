//===- LinearStyles.cpp - ColwiseParallel, RowwiseParallel ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PrepareFunctions.h"
#include "Styles.h"
#include "WeightedModule.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class LinearStyle final : public WeightStyle {
public:
  LinearStyle(StringRef name, WeightSplit::Kind kind)
      : name(name), kind(kind) {}

  StringRef getName() const override { return name; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    using Type = ArgumentSpec::Type;
    // `_prepare_input` and `_prepare_output` are PyTorch 2.0's.
    static const ArgumentSpec colwise[] = {
        {"input_layouts", Type::Layout, "Replicate"},
        {"output_layouts", Type::Layout, "Shard(-1)"},
        {"use_local_output", Type::Bool, "true"},
        {"_prepare_input", Type::Text},
        {"_prepare_output", Type::Text},
    };
    static const ArgumentSpec rowwise[] = {
        {"input_layouts", Type::Layout, "Shard(-1)"},
        {"output_layouts", Type::Layout, "Replicate"},
        {"use_local_output", Type::Bool, "true"},
        {"_prepare_input", Type::Text},
        {"_prepare_output", Type::Text},
    };
    return kind == WeightSplit::Kind::Colwise ? ArrayRef(colwise)
                                              : ArrayRef(rowwise);
  }
  ArrayRef<ArgumentAlias> getAliases(const PlanEntry &) const override {
    static const ArgumentAlias aliases[] = {
        {"input_shard", "input_layouts"},
        {"output_shard", "output_layouts"},
        {"use_local", "use_local_output"},
    };
    return aliases;
  }

  LogicalResult verify(const Arguments &arguments,
                       const MeshGroup &group) const override {
    bool valid = succeeded(verifyPrepareFunctions(arguments, group));
    Placement output = arguments["output_layouts"].getPlacement();
    bool isColwise = kind == WeightSplit::Kind::Colwise;
    if (output.isPartial() &&
        (isColwise || output.reduction != ReductionKind::Sum)) {
      emitError(arguments["output_layouts"].loc)
          << "output_layouts: the output comes as "
          << (isColwise ? "Shard(-1)" : "Partial(sum)")
          << ", which can't be redistributed to " << output.str();
      valid = false;
    }
    return success(valid);
  }

  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    WeightStyle::apply(arguments, requests);
    // Today's PyTorch has layouts instead of the functions of 2.0.
    if (!arguments["_prepare_input"].given &&
        !arguments["_prepare_output"].given)
      requests.python.reset();
  }

  ParameterUse getParameterUse() const override { return ParameterUse::Held; }

private:
  WeightSplit getSplit(const Arguments &arguments) const override {
    WeightSplit split{kind};
    split.declaredInput =
        getPreparedLayout(arguments, "_prepare_input", "input_layouts");
    split.output =
        getPreparedLayout(arguments, "_prepare_output", "output_layouts");
    return split;
  }

  StringRef name;
  WeightSplit::Kind kind;
};

} // namespace

void plan::addLinearStyles(StyleList &styles) {
  styles.push_back(std::make_unique<LinearStyle>("ColwiseParallel",
                                                 WeightSplit::Kind::Colwise));
  styles.push_back(std::make_unique<LinearStyle>("RowwiseParallel",
                                                 WeightSplit::Kind::Rowwise));
}
