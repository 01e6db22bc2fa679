//===- Style.cpp - Parallel styles ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Plan/Style.h"
#include "Evenness.h"
#include "Styles/Styles.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Dialect/NN/Traced.h"
#include "tp/Plan/Pattern.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

//===----------------------------------------------------------------------===//
// The styles of a context
//===----------------------------------------------------------------------===//

Style::~Style() = default;

static const StyleList &getBuiltinStyles() {
  static const StyleList styles = [] {
    StyleList builtin;
#define TP_ADD_STYLES(Family) add##Family##Styles(builtin);
    TP_STYLE_FAMILIES(TP_ADD_STYLES)
#undef TP_ADD_STYLES
    return builtin;
  }();
  return styles;
}

namespace {
/// Holds the styles that addStyle adds to a context.
struct AddedStyles : public DialectInterface::Base<AddedStyles> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AddedStyles)
  explicit AddedStyles(Dialect *dialect) : Base(dialect) {}

  StyleList styles;
};
} // namespace

static const Style *find(const StyleList &styles, StringRef name) {
  auto it = llvm::find_if(
      styles, [&](const auto &style) { return style->getName() == name; });
  return it == styles.end() ? nullptr : it->get();
}

static const StyleList &getAddedStyles(MLIRContext *context) {
  static const StyleList none;
  auto *added = context->getOrLoadDialect<TPDialect>()
                    ->getRegisteredInterface<AddedStyles>();
  return added ? added->styles : none;
}

void plan::addStyle(TPDialect &dialect, std::unique_ptr<Style> style) {
  auto *added = dialect.getRegisteredInterface<AddedStyles>();
  if (!added)
    added = &dialect.addInterface<AddedStyles>();
  // A context applies an extension again if another registry repeats it.
  llvm::erase_if(added->styles, [&](const auto &other) {
    return other->getName() == style->getName();
  });
  added->styles.push_back(std::move(style));
}

const Style *plan::lookupStyle(MLIRContext *context, StringRef name) {
  const Style *added = find(getAddedStyles(context), name);
  return added ? added : find(getBuiltinStyles(), name);
}

SmallVector<StringRef> plan::getStyleNames(MLIRContext *context) {
  SmallVector<StringRef> names;
  for (const StyleList *styles :
       {&getBuiltinStyles(), &getAddedStyles(context)})
    for (const std::unique_ptr<Style> &style : *styles)
      if (!llvm::is_contained(names, style->getName()))
        names.push_back(style->getName());
  return names;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

std::string InputLayout::str() const {
  std::string text =
      llvm::join(llvm::map_range(layouts,
                                 [](const Layout &layout) {
                                   return layout ? layout->str() : "null";
                                 }),
                 ", ");
  return isList ? "[" + text + "]" : text;
}

/// Reads a placement or null into `layout`.
static LogicalResult readLayout(const YamlValue &value, const Twine &argument,
                                Layout &layout) {
  layout = std::nullopt;
  if (value.isNull())
    return success();
  std::string error;
  if (value.isScalar())
    layout = parsePlacement(value.text, error);
  else
    error = "a placement is expected here, found " + value.describe();
  if (layout)
    return success();
  return emitError(value.loc, argument + ": " + error);
}

/// Reads a placement, null, or a list of them into `input`.
static LogicalResult readInputLayout(const YamlValue &value,
                                     const Twine &argument,
                                     InputLayout &input) {
  input.isList = value.isList();
  if (!input.isList)
    return readLayout(value, argument, input.layouts.front());
  if (value.items.empty())
    return emitError(
        value.loc,
        argument +
            ": the list is empty; write null to leave the input unchanged");
  bool valid = true;
  input.layouts.resize(value.items.size());
  for (auto [item, layout] : llvm::zip(value.items, input.layouts))
    valid &= succeeded(readLayout(item, argument, layout));
  return success(valid);
}

/// Reads a value other than null as its argument's type.
static LogicalResult readValue(const YamlValue &value, const ArgumentSpec &spec,
                               Argument &result) {
  using Type = ArgumentSpec::Type;
  auto expected = [&](StringRef what) {
    return emitError(value.loc) << spec.name << " must be " << what
                                << ", found " << value.describe();
  };
  switch (spec.type) {
  case Type::Bool: {
    std::optional<bool> boolean = value.getBool();
    if (!boolean)
      return expected("true or false");
    result.boolean = *boolean;
    return success();
  }
  case Type::Int: {
    std::optional<int64_t> integer = value.getInteger();
    if (!integer)
      return expected("an integer");
    result.integer = *integer;
    return success();
  }
  case Type::Ints:
    for (const YamlValue &item : value.items) {
      std::optional<int64_t> integer = item.getInteger();
      if (!value.isList() || !integer || *integer < 1)
        return expected("a list of positive integers");
      result.integers.push_back(*integer);
    }
    if (result.integers.empty())
      return expected("a list of positive integers");
    return success();
  case Type::Text:
    if (!value.isScalar())
      return expected("a name");
    result.text = value.text;
    return success();
  case Type::Layout:
  case Type::Layouts:
  case Type::InputLayouts: {
    if (value.isMap())
      return expected(spec.type == Type::Layout
                          ? "a placement"
                          : "a placement, or a list of placements and nulls");
    if (!value.isList())
      return readInputLayout(value, spec.name, result.layouts.emplace_back());
    if (spec.type == Type::Layout)
      return expected("one placement");
    bool valid = true;
    for (const YamlValue &item : value.items) {
      InputLayout &input = result.layouts.emplace_back();
      valid &=
          succeeded(spec.type == Type::InputLayouts
                        ? readInputLayout(item, spec.name, input)
                        : readLayout(item, spec.name, input.layouts.front()));
    }
    return success(valid);
  }
  case Type::KeywordLayouts: {
    if (!value.isMap())
      return expected("a map of argument names to placements");
    bool valid = true;
    for (size_t i = 0; i < value.getNumFields(); ++i) {
      auto &[name, layout] = result.keywordLayouts.emplace_back();
      name = value.getKey(i).text;
      valid &= succeeded(readInputLayout(value.getField(i),
                                         spec.name + " of " + name, layout));
    }
    return success(valid);
  }
  }
  llvm_unreachable("all types are handled");
}

LogicalResult plan::renameArguments(PlanEntry &entry,
                                    ArrayRef<ArgumentAlias> aliases) {
  bool valid = true;
  // Look up names as they are written: one argument's former name may be
  // another's current one.
  SmallVector<std::string> names;
  for (PlanArgument &argument : entry.arguments) {
    const auto *alias = llvm::find_if(aliases, [&](const ArgumentAlias &a) {
      return a.former == argument.name;
    });
    StringRef name = alias == aliases.end() ? argument.name : alias->name;
    if (llvm::is_contained(names, name)) {
      valid = false;
      emitError(argument.loc) << entry.style << " has '" << name
                              << "' twice: by today's name and a former one";
    } else if (alias != aliases.end()) {
      emitRemark(argument.loc) << "'" << argument.name << "' of " << entry.style
                               << " is called '" << name << "' today";
    }
    names.push_back(name.str());
  }
  for (auto [argument, name] : llvm::zip(entry.arguments, names))
    argument.name = name;
  return success(valid);
}

static YamlValue getDefault(const ArgumentSpec &spec, FileLineColLoc loc) {
  YamlValue value(loc);
  value.kind = YamlValue::Kind::Scalar;
  value.text = spec.defaultText.str();
  return value;
}

LogicalResult Arguments::read(const PlanEntry &entry,
                              ArrayRef<ArgumentSpec> specs) {
  bool valid = true;
  SmallVector<StringRef> names;
  for (const ArgumentSpec &spec : specs)
    names.push_back(spec.name);
  for (const PlanArgument &argument : entry.arguments) {
    if (llvm::is_contained(names, argument.name))
      continue;
    valid = false;
    std::string hint = suggestNearest(argument.name, names);
    if (hint.empty())
      hint = "; its arguments are " + llvm::join(names, ", ");
    emitError(argument.loc)
        << entry.style << " has no argument '" << argument.name << "'" << hint;
  }
  for (const ArgumentSpec &spec : specs) {
    Argument &argument = values.try_emplace(spec.name, entryLoc).first->second;
    auto written = llvm::find_if(entry.arguments, [&](const auto &candidate) {
      return candidate.name == spec.name;
    });
    // As in PyTorch, None means the default of a layout.
    bool takesNull = spec.type != ArgumentSpec::Type::Bool &&
                     spec.type != ArgumentSpec::Type::Int;
    if (written != entry.arguments.end() &&
        !(takesNull && written->value.isNull())) {
      argument.loc = written->loc;
      argument.given = true;
      valid &= succeeded(readValue(written->value, spec, argument));
    } else if (!spec.defaultText.empty()) {
      valid &= succeeded(readValue(getDefault(spec, entryLoc), spec, argument));
    } else if (spec.required) {
      valid = false;
      emitError(entry.styleLoc)
          << entry.style << " needs the argument '" << spec.name << "'";
    }
  }
  return success(valid);
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

std::string MeshGroup::describe() const {
  return "mesh dimension" + std::string(axes.size() > 1 ? "s" : "") + " '" +
         name + "' of size " + std::to_string(size);
}

std::string ModuleRequests::describeModule() const {
  return plan::describeModule(ModuleOpInterface(module).getFqn());
}

std::string plan::printReason(FileLineColLoc loc, const Twine &what) {
  StringRef file = llvm::sys::path::filename(loc.getFilename().getValue());
  return (file + ":" + Twine(loc.getLine()) + ":" + Twine(loc.getColumn()) +
          ": " + what)
      .str();
}

ModuleRequests &ModuleRequests::addChild(ModuleOpInterface child) {
  return *children.emplace_back(
      std::make_unique<ModuleRequests>(child, group, style));
}

std::optional<Placement> ModuleRequests::resolve(Placement placement, Type type,
                                                 const Twine &tensor,
                                                 FileLineColLoc loc) {
  if (!placement.isShard())
    return placement;
  auto tensorType = cast<RankedTensorType>(type);
  int64_t rank = tensorType.getRank();
  int64_t dim = placement.dim < 0 ? placement.dim + rank : placement.dim;
  if (dim < 0 || dim >= rank) {
    reportError(loc, placement.str() + " is out of range for " + tensor +
                         ", which has " + Twine(rank) +
                         (rank == 1 ? " dimension" : " dimensions"));
    return std::nullopt;
  }
  int64_t size = tensorType.getDimSize(dim);
  // Subtract, because the sum of the segments may overflow.
  int64_t rest = size;
  for (int64_t segment : placement.segments)
    rest = segment > rest ? -1 : rest - segment;
  if (!placement.segments.empty() && rest != 0) {
    reportError(loc, "the segments of " + placement.str() +
                         " don't add up to the size " + Twine(size) +
                         " of dimension " + Twine(dim) + " of " + tensor);
    return std::nullopt;
  }
  placement.dim = dim;
  if (auto finding = checkEvenness(placement, tensorType, tensor, group, loc))
    findings.push_back(std::move(*finding));
  return placement;
}

void ModuleRequests::addStep(std::vector<LayoutStep> &steps,
                             Placement placement, Type type,
                             const Twine &tensor, StringRef argument,
                             FileLineColLoc loc, bool declared) {
  std::optional<Placement> resolved = resolve(placement, type, tensor, loc);
  if (!resolved)
    return;
  // In the reason, the placement is spelled as in the plan.
  std::string reason =
      printReason(loc, style + " " + argument + " " + placement.str());
  steps.push_back({*resolved, reason, argument.str(), loc, declared});
}

void ModuleRequests::placeParameter(ParameterOpInterface parameter,
                                    Placement placement, FileLineColLoc loc) {
  if (std::optional<Placement> resolved = resolve(
          placement, parameter.getType(), "'" + parameter.getFqn() + "'", loc))
    parameters.push_back({parameter, *resolved, loc});
}

void ModuleRequests::layoutInput(unsigned index, Placement placement,
                                 StringRef argument, FileLineColLoc loc,
                                 bool declared) {
  StringRef name = cast<StringAttr>(module.getArgNames()[index]).getValue();
  addStep(inputs[index], placement, module.getInputs()[index].getType(),
          "input '" + name + "' of " + describeModule(), argument, loc,
          declared);
}

static bool isTraced(ModuleOpInterface module) {
  return module && module->hasAttr(nn::kTracedAttr);
}

void ModuleRequests::reportInputError(FileLineColLoc loc,
                                      const Twine &message) {
  if (!isTraced(module))
    return reportError(loc, message);
  if (isInputOrderReported)
    return;
  isInputOrderReported = true;
  std::string names;
  for (StringAttr name : module.getArgNames().getAsRange<StringAttr>())
    names += (names.empty() ? "'" : ", '") + name.str() + "'";
  reportError(loc,
              "which tensor input of " + describeModule() +
                  " a layout is for isn't known: the module was traced, which "
                  "leaves the inputs in the order of their first use, with "
                  "the caller's names (" +
                  names +
                  "); trace or export the model with tp_trace.py and give "
                  "tp-import its --signature, export it with "
                  "preserve_module_call_signature, or script the module");
}

void ModuleRequests::checkInputsAreKnown() {
  if (!isTraced(module) || inputs.empty())
    return;
  auto getPlacements = [](ArrayRef<LayoutStep> steps) {
    return llvm::map_to_vector(
        steps, [](const LayoutStep &step) { return step.placement; });
  };
  ArrayRef<LayoutStep> first = inputs.front();
  for (ArrayRef<LayoutStep> steps : inputs)
    if (getPlacements(steps) != getPlacements(first))
      return reportInputError((steps.empty() ? first : steps).front().loc, "");
}

void ModuleRequests::layoutOutput(unsigned index, Placement placement,
                                  StringRef argument, FileLineColLoc loc,
                                  bool declared) {
  addStep(outputs[index], placement, module->getResult(index).getType(),
          "output " + Twine(index) + " of " + describeModule(), argument, loc,
          declared);
}

LogicalResult plan::emitUnknownStyle(const PlanEntry &entry,
                                     MLIRContext *context) {
  InFlightDiagnostic error = emitError(entry.styleLoc)
                             << "unknown style '" << entry.style << "'";
  StringRef reason = explainUnsupported(entry.style);
  if (!reason.empty())
    return error << ": " << reason;
  SmallVector<StringRef> names = getStyleNames(context);
  std::string hint = suggestNearest(entry.style, names);
  if (!hint.empty())
    return error << hint;
  llvm::erase_if(names, [](StringRef name) { return llvm::isLower(name[0]); });
  return error << "; styles are " << llvm::join(names, ", ")
               << ", and the strings of Hugging Face's tp_plan";
}

LogicalResult plan::checkStyles(PlanFile &file, MLIRContext *context) {
  bool valid = true;
  for (PlanGroup &group : file.groups)
    for (PlanEntry &entry : group.entries) {
      if (!entry.direct.empty())
        continue;
      const Style *style = lookupStyle(context, entry.style);
      Arguments arguments(entry.loc);
      valid &=
          style ? succeeded(renameArguments(entry, style->getAliases(entry))) &&
                      succeeded(arguments.read(entry, style->getArguments()))
                : succeeded(emitUnknownStyle(entry, context));
    }
  return success(valid);
}
