//===- HuggingFace.cpp - The strings of transformers' tp_plan -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions 4 and 5 of transformers name their styles by strings, and some of
// them were renamed in between. All of them are rows of two tables. What each
// one does to parameters, inputs and outputs is stated in transformers'
// distributed/tensor_parallel.py and distributed/expert_parallel.py.
//
//===----------------------------------------------------------------------===//

#include "Styles.h"
#include "WeightedModule.h"
#include "mlir/IR/Diagnostics.h"

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
    /// Only for the table of an embedding.
    bool embedding = false;
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
  void applyToParameter(ParameterOpInterface parameter,
                        const Arguments &arguments,
                        ModuleRequests &requests) const override {
    FileLineColLoc loc = arguments.getEntryLoc();
    bool colwise = row.kind == kColwise;
    if (row.embedding)
      return requests.placeParameter(parameter, Placement::shard(colwise), loc);
    // A vector that isn't called a bias is as long as the split input.
    bool isScale = parameter.getType().getRank() == 1 &&
                   parameter.getFqn().rsplit('.').second != "bias";
    if (isScale && !colwise && !row.packed)
      return requests.placeParameter(parameter, Placement::shard(-1), loc);
    splitParameter(parameter, getSplit(arguments), loc, requests);
  }

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

/// Gives all parameters of a module one placement, and all tensors at its
/// boundary another one.
class UniformString final : public Style {
public:
  struct Row {
    StringRef name;
    unsigned aspects;
    Placement parameters = Placement::replicate();
    Placement boundary = Placement::replicate();
    /// The parameters of inner modules have the placement as well.
    bool isRecursive = false;
  };

  explicit UniformString(const Row &row) : row(row) {}

  StringRef getName() const override { return row.name; }
  ArrayRef<ArgumentSpec> getArguments() const override { return {}; }
  unsigned getAspects() const override { return row.aspects; }

  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    ModuleOpInterface module = requests.getModule();
    FileLineColLoc loc = arguments.getEntryLoc();
    if (row.aspects & Parameters)
      module.walk([&](ParameterOpInterface parameter) {
        StringRef holder = parameter.getFqn().rsplit('.').first;
        if (row.isRecursive || holder == module.getFqn())
          applyToParameter(parameter, arguments, requests);
      });
    if (row.aspects & Inputs) {
      // The sequence is a dimension of the first input.
      bool isSplit = row.boundary.isShard();
      unsigned count = module.getInputs().size();
      if (isSplit && count == 0)
        return requests.reportError(loc, row.name +
                                             " splits the first input of a "
                                             "module, and " +
                                             requests.describeModule() +
                                             " has no tensor input");
      for (unsigned i = 0; i < (isSplit ? 1 : count); ++i)
        requests.layoutInput(i, row.boundary, "input_layouts", loc,
                             /*declared=*/!isSplit);
    }
    // An output of lower rank, such as a mean over the sequence, isn't split.
    if (row.aspects & Outputs)
      for (auto [i, result] : llvm::enumerate(module->getResults())) {
        int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
        if (!row.boundary.isShard() || row.boundary.dim < rank)
          requests.layoutOutput(i, row.boundary, "output_layouts", loc);
      }
    requests.setPython("");
  }
  ParameterUse getParameterUse() const override {
    return row.aspects & Parameters ? ParameterUse::Named : ParameterUse::None;
  }
  void applyToParameter(ParameterOpInterface parameter,
                        const Arguments &arguments,
                        ModuleRequests &requests) const override {
    requests.placeParameter(parameter, row.parameters, arguments.getEntryLoc());
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
      {"embedding_colwise", kColwise, false, /*wholeOutput=*/true, false,
       /*embedding=*/true},
      {"embedding_rowwise", kRowwise, false, false, false, /*embedding=*/true},
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
  const UniformString::Row uniform[] = {
      {"replicate", Parameters},
      // torchtitan's name for it.
      {"NoParallel", Parameters, Placement::replicate(), Placement::replicate(),
       /*isRecursive=*/true},
      {"isolated", Parameters},
      {"local", Parameters},
      // These two sum parts of gradients, which here follows from the ops.
      {"replicated_with_grad_allreduce", Parameters},
      {"mla_kv_a_proj", Parameters},
      {"sequence_parallel", Parameters | Inputs | Outputs,
       Placement::replicate(), Placement::shard(1)},
      {"gather", Outputs},
      {"all_reduce", Outputs},
      // Experts, each of which is split, or which are spread over the ranks.
      // Their weights have entries of their own.
      {"moe_tp_experts", Inputs | Outputs},
      {"ep_dispatch_experts", Inputs | Outputs},
      {"megamoe_experts", Inputs | Outputs},
      {"grouped_gemm", Parameters, Placement::shard(0)},
      // A rank masks the choices of other ranks' experts, which here follows
      // from the placement of the experts.
      {"ep_router", Parameters | Outputs},
      {"megamoe_router", Parameters | Outputs},
      // The first of these lets a module compute with local tensors; the other
      // one divides the term that all ranks add by their number.
      {"local_params", 0},
      {"moe_identity_expert", 0},
  };
  for (const UniformString::Row &row : uniform)
    styles.push_back(std::make_unique<UniformString>(row));
}

StringRef plan::explainUnsupported(StringRef style) {
  return style == "auto"
             ? "plans aren't chosen automatically; write out the model's "
               "tp_plan, with match: hf, or begin with PairwiseParallel, and "
               "run tp-explain, which lists edits that reduce communication"
             : "";
}
