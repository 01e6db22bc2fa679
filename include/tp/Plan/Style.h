//===- Style.h - parallel styles --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A style is what a plan says about one module: the classes of
// torch.distributed.tensor.parallel, under their names and with their
// arguments. It declares its arguments, and turns them, for a module of the
// model, into placements of parameters and layouts at the module's boundary.
// docs/Plans.md says how to add one.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_STYLE_H
#define TP_PLAN_STYLE_H

#include "tp/Dialect/NN/NN.h"
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
    /// The same with one per argument of the module's forward; a list for an
    /// argument that is a tuple of tensors.
    InputLayouts,
    /// A map of argument names of the module's forward to placements; to lists
    /// of them for tuples of tensors.
    KeywordLayouts,
  };

  StringRef name;
  Type type;
  /// As a plan would write it; empty when the argument may be absent.
  StringRef defaultText = "";
  bool required = false;
};

/// A name that an argument had before, as in the proposal of today's styles
/// (https://github.com/pytorch/pytorch/pull/111160).
struct ArgumentAlias {
  StringRef former, name;
};

/// What a plan says of the tensors of one input: one layout for all of them, or
/// one for each.
struct InputLayout {
  SmallVector<Layout, 1> layouts = {std::nullopt};
  bool isList = false;

  /// Of tensor `i`, which exists.
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

  /// The argument's name in the plan; the entry where it isn't written.
  FileLineColLoc loc;
  /// Written, and not as null.
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

/// Gives the arguments of `entry` the names that they have now, with a remark
/// for each that is renamed. Emits an error where a former name and today's
/// stand beside each other.
LogicalResult renameArguments(PlanEntry &entry,
                              ArrayRef<ArgumentAlias> aliases);

/// All arguments of a style, each of them set.
class Arguments {
public:
  explicit Arguments(FileLineColLoc entryLoc) : entryLoc(entryLoc) {}

  /// Reads what `entry` gives, by `specs`. Emits an error for each argument
  /// that doesn't exist, has a value of the wrong type, or is missing.
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

/// The mesh dimensions that a style splits over, which it uses as one.
struct MeshGroup {
  AxisSet axes;
  /// The names of the dimensions, joined by ", ".
  std::string name;
  /// The ranks along all of them.
  int64_t size = 1;

  /// "mesh dimension 'tp' of size 4".
  std::string describe() const;
};

/// One placement that a tensor gets, and who wants it.
struct LayoutStep {
  /// A Shard's dimension counts from 0.
  Placement placement;
  /// "plan.yaml:4:3: RowwiseParallel output_layouts Replicate"
  std::string reason;
  /// The argument that asks for it, and its place.
  std::string argument;
  FileLineColLoc loc;
  /// The plan says that the tensor comes placed so; otherwise, that it is to be
  /// brought there.
  bool declared = false;
};

/// "plan.yaml:4:3: " and `what`, for LayoutStep::reason.
std::string printReason(FileLineColLoc loc, const Twine &what);

/// The steps of each tensor, in order.
using BoundarySteps = std::vector<std::vector<LayoutStep>>;

struct ParameterPlacement {
  nn::ParameterOp op;
  Placement placement;
  FileLineColLoc loc;
};

/// What one style asks for one call of a module, or for parameters of a module
/// that is never called. A style fills it in; each placement is checked against
/// the tensor's shape on the way.
class ModuleRequests {
public:
  ModuleRequests(nn::ModuleOp module, const MeshGroup &group, StringRef style)
      : inputs(module ? module.getInputs().size() : 0),
        outputs(module ? module.getNumResults() : 0), module(module),
        group(group), style(style) {}

  /// Null where the style is about parameters alone.
  nn::ModuleOp getModule() const { return module; }
  const MeshGroup &getGroup() const { return group; }
  StringRef getStyle() const { return style; }
  /// What an error calls the module: "'layers.0.wq'" or "the root module".
  std::string describeModule() const;

  /// Reports a problem with the module, at a place in the plan.
  void reportError(FileLineColLoc loc, const Twine &message) {
    errors.emplace_back(loc, message.str());
  }

  void placeParameter(nn::ParameterOp parameter, Placement placement,
                      FileLineColLoc loc);
  /// `argument` is the name of what asks for it, `loc` its place. A `declared`
  /// placement is the one in which the tensor comes.
  void layoutInput(unsigned index, Placement placement, StringRef argument,
                   FileLineColLoc loc, bool declared = false);
  void layoutOutput(unsigned index, Placement placement, StringRef argument,
                    FileLineColLoc loc, bool declared = false);

  /// Requests for a module inside this one; they count as if an entry of its
  /// own had made them.
  ModuleRequests &addChild(nn::ModuleOp child);

  /// The style of torch.distributed.tensor.parallel that has the same effect on
  /// the module, as a Python call; an empty text where there is none.
  void setPython(const Twine &text) { python = text.str(); }

  /// Reports layouts by position or name that don't fit the module's tensor
  /// inputs; of a module that was traced, that its inputs aren't known.
  void reportInputError(FileLineColLoc loc, const Twine &message);
  /// Reports inputs of a traced module that are laid out, unless all are in the
  /// same way.
  void checkInputsAreKnown();

  SmallVector<ParameterPlacement> parameters;
  BoundarySteps inputs, outputs;
  SmallVector<std::pair<FileLineColLoc, std::string>> errors;
  std::vector<Finding> findings;
  std::vector<std::unique_ptr<ModuleRequests>> children;
  /// The entry as it is written, unless this is set.
  std::optional<std::string> python;

private:
  /// Counts a Shard's dimension from 0 and checks that it exists.
  std::optional<Placement> resolve(Placement placement, Type type,
                                   const Twine &tensor, FileLineColLoc loc);
  void addStep(std::vector<LayoutStep> &steps, Placement placement, Type type,
               const Twine &tensor, StringRef argument, FileLineColLoc loc,
               bool declared);

  nn::ModuleOp module;
  const MeshGroup &group;
  StringRef style;
  bool isInputOrderReported = false;
};

//===----------------------------------------------------------------------===//
// Styles
//===----------------------------------------------------------------------===//

/// What a style decides about. Two entries may meet at one module when they
/// decide about different things.
enum StyleAspect : unsigned { Parameters = 1, Inputs = 2, Outputs = 4 };

/// Styles have no state: an entry's arguments come in with each call.
class Style {
public:
  virtual ~Style();

  virtual StringRef getName() const = 0;
  virtual ArrayRef<ArgumentSpec> getArguments() const = 0;
  /// The former names of arguments that `entry` may be written in.
  virtual ArrayRef<ArgumentAlias> getAliases(const PlanEntry &entry) const {
    return {};
  }
  /// A set of StyleAspects.
  virtual unsigned getAspects() const = 0;

  /// Checks arguments against each other and against the mesh dimensions that
  /// the entry is about, emitting errors in the plan.
  virtual LogicalResult verify(const Arguments &arguments,
                               const MeshGroup &group) const {
    return success();
  }
  /// Whether `module` is of the kind that the style is for. Of the modules that
  /// a regular expression matches, it is about these, if there are any.
  virtual bool accepts(nn::ModuleOp module) const { return true; }
  /// Asks for what the style means for `requests.getModule()`, or reports there
  /// why it can't be applied to it.
  virtual void apply(const Arguments &arguments,
                     ModuleRequests &requests) const = 0;

  /// Whether a pattern may match parameters instead of a module: those of a
  /// module that the model has but never calls (`Held`), or each by its own FQN
  /// (`Named`). Then applyToParameter is called for each.
  enum class ParameterUse { None, Held, Named };
  virtual ParameterUse getParameterUse() const { return ParameterUse::None; }
  virtual void applyToParameter(nn::ParameterOp parameter,
                                const Arguments &arguments,
                                ModuleRequests &requests) const {}
};

/// Makes a style known to plans. Not to be called while plans are checked.
void registerStyle(std::unique_ptr<Style> style);

/// The style called `name`, or null.
const Style *lookupStyle(StringRef name);

/// The names of all styles, as registered.
SmallVector<StringRef> getStyleNames();

} // namespace mlir::tp::plan

#endif // TP_PLAN_STYLE_H
