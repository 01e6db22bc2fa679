//===- Style.h - Parallel styles --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A style says how a plan parallelizes one module. Styles have the names and
// arguments of the classes in torch.distributed.tensor.parallel. A style
// declares its arguments, and turns them, for a module of the model, into
// placements of parameters and layouts at the module's boundary.
// docs/Extending.md says how to add one.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_STYLE_H
#define TP_PLAN_STYLE_H

#include "mlir/IR/DialectRegistry.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Plan/Finding.h"
#include "tp/Plan/Placement.h"
#include "tp/Plan/PlanFile.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace mlir::tp::plan {

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

struct ArgumentSpec {
  enum class Type {
    Bool,
    Int,
    /// A list of positive integers.
    Ints,
    Text,
    /// One placement.
    Layout,
    /// One placement, or a list of placements and nulls, one per tensor.
    Layouts,
    /// The same with one item per argument of the module's forward; an argument
    /// that is a tuple of tensors has a list.
    InputLayouts,
    /// A map from argument names of the module's forward to placements, or to
    /// lists of placements for tuples of tensors.
    KeywordLayouts,
  };

  StringRef name;
  Type type;
  /// As a plan would write it; empty if the argument has no default.
  StringRef defaultText = "";
  bool required = false;
};

/// A former name of an argument, such as those in the pull request that
/// proposed today's styles (https://github.com/pytorch/pytorch/pull/111160).
struct ArgumentAlias {
  StringRef former, name;
};

/// A plan's layouts for the tensors of one input: one for all of them, or one
/// for each.
struct InputLayout {
  SmallVector<Layout, 1> layouts = {std::nullopt};
  bool isList = false;

  /// The layout of tensor `i`, which must exist.
  Layout get(unsigned i) const { return layouts[isList ? i : 0]; }
  /// Whether all tensors are left alone.
  bool isNull() const {
    return llvm::all_of(layouts, [](const Layout &layout) { return !layout; });
  }
  /// "Shard(1)", "[Replicate, null]".
  std::string str() const;
};

/// The value of an argument, written or by default.
struct Argument {
  explicit Argument(FileLineColLoc loc) : loc(loc) {}

  /// The location of the argument's name in the plan, or of the entry if it
  /// lacks the argument.
  FileLineColLoc loc;
  /// Whether the entry has the argument with a value other than null.
  bool given = false;
  bool boolean = false;
  int64_t integer = 0;
  SmallVector<int64_t> integers;
  std::string text;
  SmallVector<InputLayout> layouts;
  SmallVector<std::pair<std::string, InputLayout>> keywordLayouts;

  /// The one placement of an argument of type Layout.
  Placement getPlacement() const { return *layouts.front().get(0); }
};

/// Renames arguments of `entry` with former names to their current names, with
/// a remark for each. Emits an error if the entry has both names of one
/// argument.
LogicalResult renameArguments(PlanEntry &entry,
                              ArrayRef<ArgumentAlias> aliases);

/// All arguments of a style, each of them set.
class Arguments {
public:
  explicit Arguments(FileLineColLoc entryLoc) : entryLoc(entryLoc) {}

  /// Reads the arguments of `entry` as `specs` declares them. Emits an error
  /// for each argument that doesn't exist, has a value of the wrong type, or is
  /// missing.
  LogicalResult read(const PlanEntry &entry, ArrayRef<ArgumentSpec> specs);

  const Argument &operator[](StringRef name) const {
    return values.find(name)->second;
  }
  bool has(StringRef name) const { return values.contains(name); }
  FileLineColLoc getEntryLoc() const { return entryLoc; }

private:
  FileLineColLoc entryLoc;
  llvm::StringMap<Argument> values;
};

//===----------------------------------------------------------------------===//
// What a style asks for
//===----------------------------------------------------------------------===//

/// The mesh dimensions that a style splits over as if they were one.
struct MeshGroup {
  AxisSet axes;
  /// The names of the dimensions, joined by ", ".
  std::string name;
  /// The ranks along all of them.
  int64_t size = 1;

  /// "mesh dimension 'tp' of size 4".
  std::string describe() const;
};

/// One placement that a tensor gets, and the reason for it.
struct LayoutStep {
  /// A Shard's dimension is non-negative.
  Placement placement;
  /// "plan.yaml:4:3: RowwiseParallel output_layouts Replicate"
  std::string reason;
  /// The argument that asks for it, and the argument's location.
  std::string argument;
  FileLineColLoc loc;
  /// Whether the plan declares that the tensor already has this placement.
  /// Otherwise, the tensor is to be redistributed to it.
  bool declared = false;
};

/// "plan.yaml:4:3: " and `what`, for LayoutStep::reason.
std::string printReason(FileLineColLoc loc, const Twine &what);

/// The steps of each tensor, in order.
using BoundarySteps = std::vector<std::vector<LayoutStep>>;

struct ParameterPlacement {
  ParameterOpInterface op;
  Placement placement;
  FileLineColLoc loc;
};

/// The requests of one style for one call of a module, or for parameters of a
/// module that is never called. A style fills it in; each placement is checked
/// against the tensor's shape as it is added.
class ModuleRequests {
public:
  ModuleRequests(ModuleOpInterface module, const MeshGroup &group,
                 StringRef style)
      : inputs(module ? module.getInputs().size() : 0),
        outputs(module ? module->getNumResults() : 0), module(module),
        group(group), style(style) {}

  /// Null if the style is applied to parameters only.
  ModuleOpInterface getModule() const { return module; }
  const MeshGroup &getGroup() const { return group; }
  StringRef getStyle() const { return style; }
  /// The module's name in errors: "'layers.0.wq'" or "the root module".
  std::string describeModule() const;

  /// Reports a problem with the module, at a location in the plan.
  void reportError(FileLineColLoc loc, const Twine &message) {
    errors.emplace_back(loc, message.str());
  }

  void placeParameter(ParameterOpInterface parameter, Placement placement,
                      FileLineColLoc loc);
  /// `argument` is the name of the argument that asks for the placement, `loc`
  /// its location. A `declared` placement is one that the tensor already has.
  void layoutInput(unsigned index, Placement placement, StringRef argument,
                   FileLineColLoc loc, bool declared = false);
  void layoutOutput(unsigned index, Placement placement, StringRef argument,
                    FileLineColLoc loc, bool declared = false);

  /// Adds requests for a module inside this one. They are treated as if that
  /// module had an entry of its own.
  ModuleRequests &addChild(ModuleOpInterface child);

  /// Sets the Python call of the style in torch.distributed.tensor.parallel
  /// that has the same effect on the module; empty if there is none.
  void setPython(const Twine &text) { python = text.str(); }

  /// Reports layouts by position or name that don't fit the module's tensor
  /// inputs. For a traced module, reports that its inputs aren't known.
  void reportInputError(FileLineColLoc loc, const Twine &message);
  /// Reports layouts for inputs of a traced module, unless all inputs have the
  /// same layout.
  void checkInputsAreKnown();

  SmallVector<ParameterPlacement> parameters;
  BoundarySteps inputs, outputs;
  SmallVector<std::pair<FileLineColLoc, std::string>> errors;
  std::vector<Finding> findings;
  std::vector<std::unique_ptr<ModuleRequests>> children;
  /// Unless this is set, the Python call is printed from the entry as written.
  std::optional<std::string> python;

private:
  /// Makes a Shard's dimension non-negative and checks that it exists.
  std::optional<Placement> resolve(Placement placement, Type type,
                                   const Twine &tensor, FileLineColLoc loc);
  void addStep(std::vector<LayoutStep> &steps, Placement placement, Type type,
               const Twine &tensor, StringRef argument, FileLineColLoc loc,
               bool declared);

  ModuleOpInterface module;
  const MeshGroup &group;
  StringRef style;
  bool isInputOrderReported = false;
};

//===----------------------------------------------------------------------===//
// Styles
//===----------------------------------------------------------------------===//

/// The aspects of a module that a style sets. Two entries may match the same
/// module if their styles set different aspects.
enum StyleAspect : unsigned { Parameters = 1, Inputs = 2, Outputs = 4 };

/// Styles have no state: an entry's arguments are passed to each call.
class Style {
public:
  virtual ~Style();

  virtual StringRef getName() const = 0;
  virtual ArrayRef<ArgumentSpec> getArguments() const = 0;
  /// The former argument names that `entry` may use.
  virtual ArrayRef<ArgumentAlias> getAliases(const PlanEntry &entry) const {
    return {};
  }
  /// A set of StyleAspects.
  virtual unsigned getAspects() const = 0;

  /// Checks arguments against each other and against the entry's mesh
  /// dimensions, and emits errors at the plan's locations.
  virtual LogicalResult verify(const Arguments &arguments,
                               const MeshGroup &group) const {
    return success();
  }
  /// Whether `module` is of the kind that the style is for. If a regular
  /// expression matches any such modules, the entry applies only to those.
  virtual bool accepts(ModuleOpInterface module) const { return true; }
  /// Adds the style's requests for `requests.getModule()`, or reports in
  /// `requests` why the style can't be applied to the module.
  virtual void apply(const Arguments &arguments,
                     ModuleRequests &requests) const = 0;

  /// Whether a pattern may match parameters instead of a module: those of a
  /// module that the model has but never calls (`Held`), or each by its own FQN
  /// (`Named`). applyToParameter is then called for each parameter.
  enum class ParameterUse { None, Held, Named };
  virtual ParameterUse getParameterUse() const { return ParameterUse::None; }
  virtual void applyToParameter(ParameterOpInterface parameter,
                                const Arguments &arguments,
                                ModuleRequests &requests) const {}
};

/// Adds `style` to the styles that plans may use in the context of `dialect`.
/// It replaces a style of the same name, also a built-in one.
void addStyle(TPDialect &dialect, std::unique_ptr<Style> style);

/// Adds a `StyleT` to each context that `registry` is given to.
template <typename StyleT>
void registerStyle(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, TPDialect *dialect) {
    addStyle(*dialect, std::make_unique<StyleT>());
  });
}

/// The style called `name` in `context`, or null.
const Style *lookupStyle(MLIRContext *context, StringRef name);

/// The names of all styles in `context`: the built-in ones first.
SmallVector<StringRef> getStyleNames(MLIRContext *context);

/// Reports a style that `context` doesn't have, with what may be meant.
LogicalResult emitUnknownStyle(const PlanEntry &entry, MLIRContext *context);

/// Checks what doesn't depend on a model: that the styles of `file` exist, and
/// that their arguments do, with values of the right types. Renames former
/// arguments.
LogicalResult checkStyles(PlanFile &file, MLIRContext *context);

} // namespace mlir::tp::plan

#endif // TP_PLAN_STYLE_H
