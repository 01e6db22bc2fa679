//===- PrepareModule.cpp - PrepareModuleInput, -Output, -InputOutput ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These styles don't place parameters. They say how tensors enter and leave a
// module: first the layout that a tensor is declared to have, then the layout
// that is desired.
//
//===----------------------------------------------------------------------===//

#include "Styles.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Plan/Pattern.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

using ArgumentType = ArgumentSpec::Type;

/// Checks one tensor. As in PyTorch, a value can't be made Partial.
static LogicalResult verifyTensor(const Argument &desiredArgument,
                                  StringRef desiredName, StringRef declaredName,
                                  const Twine &where, Layout declared,
                                  Layout desired) {
  if (desired && !declared)
    return emitError(desiredArgument.loc)
           << desiredName << " has " << desired->str() << " " << where.str()
           << ", where " << declaredName
           << " has null, which leaves the tensor alone";
  if (desired && desired->isPartial() && desired != declared)
    return emitError(desiredArgument.loc)
           << desiredName << " has " << desired->str() << " " << where.str()
           << ", but no value can be redistributed to Partial";
  return success();
}

static LogicalResult verifyPair(const Argument &desiredArgument,
                                StringRef desiredName, StringRef declaredName,
                                const Twine &where, const InputLayout &declared,
                                const InputLayout &desired) {
  size_t count = std::max(declared.layouts.size(), desired.layouts.size());
  if (declared.isList && desired.isList &&
      declared.layouts.size() != desired.layouts.size())
    return emitError(desiredArgument.loc)
           << declaredName << " and " << desiredName << " have "
           << declared.layouts.size() << " and " << desired.layouts.size()
           << " placements " << where;
  bool valid = true;
  for (size_t i = 0; i < count && valid; ++i)
    valid = succeeded(verifyTensor(desiredArgument, desiredName, declaredName,
                                   where, declared.get(i), desired.get(i)));
  return success(valid);
}

/// Checks that two lists of layouts, declared and desired, fit together.
static LogicalResult verifyLists(const Arguments &arguments,
                                 StringRef declaredName,
                                 StringRef desiredName) {
  const Argument &declared = arguments[declaredName];
  const Argument &desired = arguments[desiredName];
  if (!declared.given && !desired.given)
    return success();
  if (declared.given != desired.given)
    return emitError((declared.given ? declared : desired).loc)
           << (declared.given ? declaredName : desiredName) << " needs "
           << (declared.given ? desiredName : declaredName) << " beside it";
  if (declared.layouts.size() != desired.layouts.size())
    return emitError(desired.loc)
           << declaredName << " and " << desiredName
           << " must have the same length, found " << declared.layouts.size()
           << " and " << desired.layouts.size();
  bool valid = true;
  for (size_t i = 0; i < declared.layouts.size(); ++i)
    valid &= succeeded(verifyPair(desired, desiredName, declaredName,
                                  "at position " + Twine(i),
                                  declared.layouts[i], desired.layouts[i]));
  return success(valid);
}

static InputLayout findKeyword(const Argument &argument, StringRef name) {
  for (auto &[keyword, layout] : argument.keywordLayouts)
    if (keyword == name)
      return layout;
  return {};
}

/// The same for layouts by name.
static LogicalResult verifyKeywords(const Arguments &arguments) {
  const StringRef declaredName = "input_kwarg_layouts";
  const StringRef desiredName = "desired_input_kwarg_layouts";
  const Argument &declared = arguments[declaredName];
  const Argument &desired = arguments[desiredName];
  if (!declared.given && !desired.given)
    return success();
  if (declared.given != desired.given)
    return emitError((declared.given ? declared : desired).loc)
           << (declared.given ? declaredName : desiredName) << " needs "
           << (declared.given ? desiredName : declaredName) << " beside it";
  bool valid = true;
  for (auto &[name, layout] : desired.keywordLayouts)
    valid &= succeeded(verifyPair(desired, desiredName, declaredName,
                                  "for '" + name + "'",
                                  findKeyword(declared, name), layout));
  for (auto &[name, layout] : declared.keywordLayouts) {
    if (llvm::is_contained(llvm::make_first_range(desired.keywordLayouts),
                           name))
      continue;
    emitError(desired.loc) << desiredName << " lacks '" << name << "', which "
                           << declaredName << " has";
    valid = false;
  }
  return success(valid);
}

namespace {
/// An argument of forward that is a tensor, or a tuple, list or dictionary of
/// tensors.
struct ModuleInput {
  StringRef name;
  int64_t position;
  /// Indices of the module's operands.
  SmallVector<unsigned, 2> operands;
};
} // namespace

/// Groups the tensors of a tuple, which have its position and are called
/// `name.0`, `name.1`, ….
static SmallVector<ModuleInput> getInputs(ModuleOpInterface module) {
  SmallVector<ModuleInput> inputs;
  for (auto [index, name, position] :
       llvm::enumerate(module.getArgNames().getAsRange<StringAttr>(),
                       module.getArgPositions())) {
    if (!inputs.empty() && inputs.back().position == position) {
      inputs.back().name = name.getValue().rsplit('.').first;
      inputs.back().operands.push_back(index);
      continue;
    }
    inputs.push_back({name.getValue(), position, {unsigned(index)}});
  }
  // A tuple of one.
  for (ModuleInput &input : inputs)
    if (auto [name, number] = input.name.rsplit('.');
        input.operands.size() == 1 && number == "0")
      input.name = name;
  return inputs;
}

/// "'x' at 0, 'mask' at 2, 'freqs' (2 tensors) at 3"
static std::string describeInputs(ArrayRef<ModuleInput> inputs) {
  std::string text;
  for (const ModuleInput &input : inputs) {
    text += (text.empty() ? "'" : ", '") + input.name.str() + "'";
    if (input.operands.size() > 1)
      text += " (" + std::to_string(input.operands.size()) + " tensors)";
    text += " at " + std::to_string(input.position);
  }
  return text.empty() ? "none" : text;
}

static void applyStep(ModuleRequests &requests, unsigned index, bool isInput,
                      Layout declared, StringRef declaredName,
                      FileLineColLoc declaredLoc, Layout desired,
                      StringRef desiredName, FileLineColLoc desiredLoc) {
  auto layout =
      isInput ? &ModuleRequests::layoutInput : &ModuleRequests::layoutOutput;
  if (declared)
    (requests.*layout)(index, *declared, declaredName, declaredLoc,
                       /*declared=*/true);
  if (declared && desired && desired != declared)
    (requests.*layout)(index, *desired, desiredName, desiredLoc,
                       /*declared=*/false);
}

/// Whether any of the arguments is written.
static bool hasAny(const Arguments &arguments, ArrayRef<StringRef> names) {
  return llvm::any_of(names,
                      [&](StringRef name) { return arguments[name].given; });
}

constexpr StringRef kInputArguments[] = {
    "input_layouts", "desired_input_layouts", "input_kwarg_layouts",
    "desired_input_kwarg_layouts"};
constexpr StringRef kOutputArguments[] = {"output_layouts",
                                          "desired_output_layouts"};

/// The defaults of PyTorch 2.1, which gather an input and split an output.
static void applyDefaults(const Arguments &arguments, bool isInput,
                          ModuleRequests &requests) {
  ModuleOpInterface module = requests.getModule();
  FileLineColLoc loc = arguments.getEntryLoc();
  size_t count = isInput ? module.getInputs().size() : module->getNumResults();
  StringRef what = isInput ? "input" : "output";
  if (count != 1)
    return requests.reportError(
        loc, requests.getStyle() + " needs " + what + "_layouts and desired_" +
                 what + "_layouts, as " + requests.describeModule() + " has " +
                 Twine(count) + " tensor " + what + "s");
  Placement sharded = Placement::shard(0), whole = Placement::replicate();
  if (isInput)
    applyStep(requests, 0, isInput, sharded, "input_layouts", loc, whole,
              "desired_input_layouts", loc);
  else
    applyStep(requests, 0, isInput, whole, "output_layouts", loc, sharded,
              "desired_output_layouts", loc);
}

static void applyInputs(const Arguments &arguments, ModuleRequests &requests) {
  if (!hasAny(arguments, kInputArguments))
    return applyDefaults(arguments, /*isInput=*/true, requests);
  ModuleOpInterface module = requests.getModule();
  const Argument &declared = arguments["input_layouts"];
  const Argument &desired = arguments["desired_input_layouts"];
  const Argument &declaredKeywords = arguments["input_kwarg_layouts"];
  const Argument &desiredKeywords = arguments["desired_input_kwarg_layouts"];
  SmallVector<ModuleInput> inputs = getInputs(module);
  auto isKeyword = [&](StringRef name) {
    return llvm::is_contained(
        llvm::make_first_range(declaredKeywords.keywordLayouts), name);
  };
  // Lays out all tensors of an input.
  auto layOut = [&](const ModuleInput &input, const InputLayout &from,
                    StringRef fromName, FileLineColLoc fromLoc,
                    const InputLayout &to, StringRef toName,
                    FileLineColLoc toLoc) {
    for (auto [list, loc, name] :
         {std::tuple(&from, fromLoc, fromName), std::tuple(&to, toLoc, toName)})
      if (list->isList && list->layouts.size() != input.operands.size())
        return requests.reportError(
            loc, name + " has " + Twine(list->layouts.size()) +
                     " placements for '" + input.name + "' of " +
                     requests.describeModule() + ", which has " +
                     Twine(input.operands.size()) +
                     (input.operands.size() == 1 ? " tensor" : " tensors"));
    for (auto [i, operand] : llvm::enumerate(input.operands))
      applyStep(requests, operand, /*isInput=*/true, from.get(i), fromName,
                fromLoc, to.get(i), toName, toLoc);
  };

  if (declared.given) {
    // Positions count all arguments of forward; those that aren't tensors must
    // be null. Arguments that are laid out by name need no position.
    size_t needed = 0;
    for (const ModuleInput &input : inputs)
      if (!isKeyword(input.name))
        needed = std::max<size_t>(needed, input.position + 1);
    if (declared.layouts.size() < needed)
      return requests.reportInputError(
          declared.loc,
          "input_layouts has " + Twine(declared.layouts.size()) +
              (declared.layouts.size() == 1 ? " entry" : " entries") +
              ", but " + requests.describeModule() + " has the tensor inputs " +
              describeInputs(inputs) +
              "; write null for an input that keeps its layout");
    for (auto [position, layout] : llvm::enumerate(declared.layouts)) {
      auto *input = llvm::find_if(inputs, [&](const ModuleInput &candidate) {
        return candidate.position == static_cast<int64_t>(position);
      });
      if (input == inputs.end()) {
        if (!layout.isNull())
          requests.reportInputError(
              declared.loc,
              "input_layouts has " + layout.str() + " at position " +
                  Twine(position) + ", which isn't a tensor input of " +
                  requests.describeModule() +
                  "; its tensor inputs: " + describeInputs(inputs));
        continue;
      }
      if (!layout.isNull() && isKeyword(input->name)) {
        requests.reportInputError(declaredKeywords.loc,
                                  "input '" + input->name + "' of " +
                                      requests.describeModule() +
                                      " has a layout by position as well");
        continue;
      }
      layOut(*input, layout, "input_layouts", declared.loc,
             desired.layouts[position], "desired_input_layouts", desired.loc);
    }
  }

  for (auto &[name, layout] : declaredKeywords.keywordLayouts) {
    auto *input = llvm::find_if(inputs, [&](const ModuleInput &candidate) {
      return candidate.name == name;
    });
    if (input == inputs.end()) {
      SmallVector<StringRef> names;
      for (const ModuleInput &candidate : inputs)
        names.push_back(candidate.name);
      std::string hint = suggestNearest(name, names);
      requests.reportInputError(
          declaredKeywords.loc,
          requests.describeModule() + " has no tensor input '" + name + "'" +
              (hint.empty() ? "; its tensor inputs: " + describeInputs(inputs)
                            : hint));
      continue;
    }
    layOut(*input, layout, "input_kwarg_layouts", declaredKeywords.loc,
           findKeyword(desiredKeywords, name), "desired_input_kwarg_layouts",
           desiredKeywords.loc);
  }
}

static void applyOutputs(const Arguments &arguments, ModuleRequests &requests) {
  if (!hasAny(arguments, kOutputArguments))
    return applyDefaults(arguments, /*isInput=*/false, requests);
  ModuleOpInterface module = requests.getModule();
  const Argument &declared = arguments["output_layouts"];
  const Argument &desired = arguments["desired_output_layouts"];
  if (declared.layouts.size() != module->getNumResults())
    return requests.reportError(
        declared.loc,
        "output_layouts has " + Twine(declared.layouts.size()) +
            (declared.layouts.size() == 1 ? " entry" : " entries") + ", but " +
            requests.describeModule() + " has " +
            Twine(module->getNumResults()) + " tensor output" +
            (module->getNumResults() == 1 ? "" : "s"));
  for (unsigned i = 0; i < module->getNumResults(); ++i)
    applyStep(requests, i, /*isInput=*/false, declared.layouts[i].get(0),
              "output_layouts", declared.loc, desired.layouts[i].get(0),
              "desired_output_layouts", desired.loc);
}

namespace {

class PrepareModule final : public Style {
public:
  PrepareModule(StringRef name, unsigned aspects)
      : name(name), aspects(aspects) {}

  StringRef getName() const override { return name; }
  unsigned getAspects() const override { return aspects; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    // `use_local_output` has another default beside inputs alone.
    static const ArgumentSpec input[] = {
        {"input_layouts", ArgumentType::InputLayouts},
        {"desired_input_layouts", ArgumentType::InputLayouts},
        {"input_kwarg_layouts", ArgumentType::KeywordLayouts},
        {"desired_input_kwarg_layouts", ArgumentType::KeywordLayouts},
        {"use_local_output", ArgumentType::Bool, "false"},
    };
    static const ArgumentSpec both[] = {
        input[0],
        input[1],
        input[2],
        input[3],
        {"use_local_input", ArgumentType::Bool, "false"},
        {"output_layouts", ArgumentType::Layouts},
        {"desired_output_layouts", ArgumentType::Layouts},
        {"use_local_output", ArgumentType::Bool, "true"},
    };
    if (aspects == Inputs)
      return input;
    return aspects == Outputs ? ArrayRef(both).take_back(3) : ArrayRef(both);
  }
  ArrayRef<ArgumentAlias> getAliases(const PlanEntry &entry) const override {
    static const ArgumentAlias ofInput[] = {
        {"input_shard", "input_layouts"},
        {"output_shard", "desired_input_layouts"},
        {"output_layouts", "desired_input_layouts"},
        {"use_local", "use_local_output"},
    };
    static const ArgumentAlias ofOutput[] = {
        {"use_local", "use_local_output"},
        {"input_shard", "output_layouts"},
        {"output_shard", "desired_output_layouts"},
        // Today's output_layouts was called input_layouts, and output_layouts
        // had another meaning. So the name alone doesn't say what is meant.
        {"input_layouts", "output_layouts"},
        {"output_layouts", "desired_output_layouts"},
    };
    if (aspects != Outputs)
      return aspects == Inputs ? ArrayRef(ofInput) : ArrayRef<ArgumentAlias>();
    bool isFormer =
        llvm::any_of(entry.arguments, [](const PlanArgument &argument) {
          return argument.name == "input_layouts";
        });
    return ArrayRef(ofOutput).drop_back(isFormer ? 0 : 2);
  }
  LogicalResult verify(const Arguments &arguments,
                       const MeshGroup &) const override {
    bool valid = true;
    if (aspects & Inputs) {
      valid &= succeeded(
          verifyLists(arguments, "input_layouts", "desired_input_layouts"));
      valid &= succeeded(verifyKeywords(arguments));
    }
    if (aspects & Outputs)
      valid &= succeeded(
          verifyLists(arguments, "output_layouts", "desired_output_layouts"));
    return success(valid);
  }
  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    if (aspects & Inputs)
      applyInputs(arguments, requests);
    if (aspects & Outputs)
      applyOutputs(arguments, requests);
  }

private:
  StringRef name;
  unsigned aspects;
};

} // namespace

void plan::addPrepareModuleStyles(StyleList &styles) {
  styles.push_back(
      std::make_unique<PrepareModule>("PrepareModuleInput", Inputs));
  styles.push_back(
      std::make_unique<PrepareModule>("PrepareModuleOutput", Outputs));
  styles.push_back(std::make_unique<PrepareModule>("PrepareModuleInputOutput",
                                                   Inputs | Outputs));
}
