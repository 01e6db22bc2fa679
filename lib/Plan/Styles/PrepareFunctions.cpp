//===- PrepareFunctions.cpp - make_input_…, make_output_… -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PrepareFunctions.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Plan/Pattern.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

struct PrepareFunction {
  StringRef name;
  bool isInput;
  Placement placement;
  bool takesDim = false;
};

} // namespace

static ArrayRef<PrepareFunction> getPrepareFunctions() {
  static const PrepareFunction functions[] = {
      {"make_input_replicate_1d", true, Placement::replicate()},
      // PyTorch shards along dimension 0 and then replicates. Both styles'
      // computation needs a replicated input anyway.
      {"make_input_reshard_replicate", true, Placement::shard(0)},
      {"make_input_shard_1d", true, Placement::shard(0), /*takesDim=*/true},
      {"make_input_shard_1d_last_dim", true, Placement::shard(-1)},
      {"make_output_replicate_1d", false, Placement::replicate()},
      {"make_output_reshard_tensor", false, Placement::shard(0)},
      {"make_output_shard_1d", false, Placement::shard(0), /*takesDim=*/true},
      {"make_output_tensor", false, Placement::replicate()},
      {"make_sharded_output_tensor", false, Placement::shard(-1)},
  };
  return functions;
}

/// Reads `name`, or `name(dim)` and `name(dim=…)` of a function that takes one.
static std::optional<Placement>
parsePrepareFunction(StringRef text, bool isInput, std::string &error) {
  StringRef name = text.trim(), argument;
  if (name.consume_back(")"))
    std::tie(name, argument) = name.split('(');
  name = name.rtrim();
  argument = argument.trim();
  SmallVector<StringRef> names;
  for (const PrepareFunction &function : getPrepareFunctions()) {
    if (function.isInput == isInput)
      names.push_back(function.name);
    if (function.name != name || function.isInput != isInput)
      continue;
    if (argument.empty())
      return function.placement;
    if (argument.consume_front("dim"))
      (void)(argument = argument.ltrim()).consume_front("=");
    int64_t dim;
    if (function.takesDim && !argument.trim().getAsInteger(10, dim))
      return Placement::shard(dim);
    error = function.takesDim ? (name + " takes an integer, its dim").str()
                              : (name + " takes no argument").str();
    return std::nullopt;
  }
  std::string hint = suggestNearest(name, names);
  if (hint.empty())
    hint = "; functions are " + llvm::join(names, ", ");
  error = ("there is no function '" + name + "'" + hint).str();
  return std::nullopt;
}

LogicalResult plan::verifyPrepareFunctions(const Arguments &arguments,
                                           const MeshGroup &group) {
  bool valid = true;
  for (bool isInput : {true, false}) {
    const Argument &function =
        arguments[isInput ? "_prepare_input" : "_prepare_output"];
    if (!function.given)
      continue;
    StringRef name = isInput ? "_prepare_input" : "_prepare_output";
    StringRef layout = isInput ? "input_layouts" : "output_layouts";
    std::string error;
    if (!parsePrepareFunction(function.text, isInput, error))
      error = (name + ": " + error).str();
    else if (group.axes.size() > 1)
      error = (name + ": " + function.text +
               " takes a mesh of one dimension, but the plan is over '" +
               group.name + "'")
                  .str();
    else if (arguments.has(layout) && arguments[layout].given)
      error = (name + " and " + layout +
               " say the same, the one in PyTorch 2.0, the other since 2.1")
                  .str();
    else
      continue;
    emitError(function.loc, error);
    valid = false;
  }
  return success(valid);
}

std::optional<NamedLayout> plan::getPreparedLayout(const Arguments &arguments,
                                                   StringRef function) {
  const Argument &prepare = arguments[function];
  if (prepare.text.empty())
    return std::nullopt;
  std::string error;
  std::optional<Placement> placement =
      parsePrepareFunction(prepare.text, function == "_prepare_input", error);
  if (!placement)
    return std::nullopt;
  return NamedLayout{*placement, function, prepare.loc};
}

NamedLayout plan::getPreparedLayout(const Arguments &arguments,
                                    StringRef function, StringRef layout) {
  if (auto prepared = getPreparedLayout(arguments, function))
    return *prepared;
  return {arguments[layout].getPlacement(), layout, arguments[layout].loc};
}
