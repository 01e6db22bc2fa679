//===- HuggingFace.cpp - the strings of transformers' tp_plan -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions 4 and 5 of transformers name their styles by strings, and some of
// them were renamed in between. All of them are rows of two tables.
//
//===----------------------------------------------------------------------===//

#include "Styles.h"
#include "WeightedModule.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

constexpr auto kColwise = WeightSplit::Kind::Colwise;
constexpr auto kRowwise = WeightSplit::Kind::Rowwise;

/// Splits a weight.
class WeightString final : public WeightStyle {
public:
  struct Row {
    StringRef name;
    WeightSplit::Kind kind;
    /// The input is replicated, and each rank takes its part of it.
    bool wholeInput = false;
    /// The output is gathered.
    bool wholeOutput = false;
    /// The weight packs several, such as gate and up projection.
    bool packed = false;
  };

  explicit WeightString(const Row &row) : row(row) {}

  StringRef getName() const override { return row.name; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    static const ArgumentSpec packed[] = {
        {"blocks", ArgumentSpec::Type::Int, "2"},
        {"segments", ArgumentSpec::Type::Ints},
    };
    return row.packed ? ArrayRef(packed) : ArrayRef<ArgumentSpec>();
  }

  LogicalResult verify(const Arguments &arguments,
                       const MeshGroup &) const override {
    if (!row.packed)
      return success();
    const Argument &blocks = arguments["blocks"];
    if (blocks.integer < 1)
      return emitError(blocks.loc)
             << "blocks must be at least 1, found " << blocks.integer;
    if (blocks.given && arguments["segments"].given)
      return emitError(blocks.loc) << "blocks are segments of one size; give "
                                      "either blocks or segments";
    return success();
  }
  ParameterUse getParameterUse() const override { return ParameterUse::Named; }

private:
  WeightSplit getSplit(const Arguments &arguments) const override {
    FileLineColLoc loc = arguments.getEntryLoc();
    WeightSplit split{row.kind};
    if (row.wholeInput)
      split.declaredInput = {Placement::replicate(), "input_layouts", loc};
    if (row.wholeOutput)
      split.output = {Placement::replicate(), "output_layouts", loc};
    if (!row.packed)
      return split;
    split.segments = arguments["segments"].integers;
    // One segment means no segments.
    if (split.segments.size() == 1)
      split.segments.clear();
    else if (split.segments.empty())
      split.blocks = arguments["blocks"].integer;
    return split;
  }

  Row row;
};

/// Replicates weights, and at most says how tensors enter and leave.
class WholeString final : public Style {
public:
  struct Row {
    StringRef name;
    /// With Inputs, the style splits the sequence inside the module.
    unsigned aspects;
  };

  explicit WholeString(const Row &row) : row(row) {}

  StringRef getName() const override { return row.name; }
  ArrayRef<ArgumentSpec> getArguments() const override { return {}; }
  unsigned getAspects() const override { return row.aspects; }

  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    ModuleOpInterface module = requests.getModule();
    FileLineColLoc loc = arguments.getEntryLoc();
    if (row.aspects & Parameters)
      module.walk([&](ParameterOpInterface parameter) {
        applyToParameter(parameter, arguments, requests);
      });
    if (row.aspects & Inputs) {
      if (module.getInputs().empty())
        return requests.reportError(loc, row.name +
                                             " splits the first input of a "
                                             "module, and " +
                                             requests.describeModule() +
                                             " has no tensor input");
      requests.layoutInput(0, Placement::replicate(), "input_layouts", loc,
                           /*declared=*/true);
      requests.layoutInput(0, Placement::shard(1), "desired_input_layouts",
                           loc);
    }
    if (row.aspects & Outputs)
      for (unsigned i = 0; i < module->getNumResults(); ++i)
        requests.layoutOutput(i, Placement::replicate(), "output_layouts", loc);
    requests.setPython("");
  }
  ParameterUse getParameterUse() const override {
    return row.aspects == Parameters ? ParameterUse::Named : ParameterUse::None;
  }
  void applyToParameter(ParameterOpInterface parameter,
                        const Arguments &arguments,
                        ModuleRequests &requests) const override {
    requests.placeParameter(parameter, Placement::replicate(),
                            arguments.getEntryLoc());
  }

private:
  Row row;
};

} // namespace

void plan::addHuggingFaceStyles(StyleList &styles) {
  const WeightString::Row weights[] = {
      {"colwise", kColwise},
      {"rowwise", kRowwise},
      {"colwise_gather_output", kColwise, false, /*wholeOutput=*/true},
      {"colwise_rep", kColwise, false, /*wholeOutput=*/true},
      {"rowwise_split_input", kRowwise, /*wholeInput=*/true},
      {"rowwise_rep", kRowwise, /*wholeInput=*/true},
      {"embedding_colwise", kColwise},
      {"embedding_rowwise", kRowwise},
      {"packed_colwise", kColwise, false, false, /*packed=*/true},
      {"packed_rowwise", kRowwise, false, false, /*packed=*/true},
      {"local_colwise", kColwise},
      {"local_rowwise", kRowwise},
      {"local_packed_colwise", kColwise, false, false, /*packed=*/true},
      {"local_packed_rowwise", kRowwise, false, false, /*packed=*/true},
      {"colwiseparallel", kColwise},
      {"rowwiseparallel", kRowwise},
  };
  for (const WeightString::Row &row : weights)
    styles.push_back(std::make_unique<WeightString>(row));
  const WholeString::Row wholes[] = {
      {"sequence_parallel", Parameters | Inputs | Outputs},
      {"replicate", Parameters},
      // torchtitan's name for it.
      {"NoParallel", Parameters},
      {"replicated_with_grad_allreduce", Parameters},
      {"isolated", Parameters},
      {"local", Parameters},
      {"gather", Outputs},
      {"all_reduce", Outputs},
  };
  for (const WholeString::Row &row : wholes)
    styles.push_back(std::make_unique<WholeString>(row));
}

StringRef plan::explainUnsupported(StringRef style) {
  constexpr StringRef experts =
      "it spreads the experts of a mixture of experts over ranks, and a model "
      "with a router isn't supported; the experts' weights alone can have "
      "colwise, rowwise and their packed forms";
  return llvm::StringSwitch<StringRef>(style)
      .Cases({"grouped_gemm", "ep_router", "moe_tp_experts",
              "moe_identity_expert", "megamoe_router", "megamoe_experts"},
             experts)
      .Case("auto",
            "plans aren't chosen automatically; write out the model's tp_plan, "
            "with match: hf, or begin with PairwiseParallel, and run "
            "tp-explain, which lists edits that reduce communication")
      .Case("mla_kv_a_proj",
            "it splits the one half of a projection's output and not the "
            "other; write replicate, or packed_colwise with segments")
      .Default("");
}
