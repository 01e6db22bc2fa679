//===- Style.h - parallel styles --------------------------------*- C++ -*-===//
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
    /// One placement.
    Layout,
    /// One placement, or a list of placements and nulls, one per tensor.
    Layouts,
    /// A map of argument names of the module's forward to placements.
    KeywordLayouts,
  };

  StringRef name;
  Type type;
  /// As a plan would write it; empty when the argument may be absent.
  StringRef defaultText = "";
  bool required = false;
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
  SmallVector<Layout> layouts;
  SmallVector<std::pair<std::string, Layout>> keywordLayouts;

  /// The one placement of an argument of type Layout.
  Placement getPlacement() const { return *layouts.front(); }
};

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
  FileLineColLoc getEntryLoc() const { return entryLoc; }

private:
  FileLineColLoc entryLoc;
  llvm::StringMap<Argument> values;
};

//===----------------------------------------------------------------------===//
// What a style asks for
//===----------------------------------------------------------------------===//

/// One placement that a tensor gets, and who wants it.
struct LayoutStep {
  /// A Shard's dimension counts from 0.
  Placement placement;
  /// "plan.yaml:4:3: RowwiseParallel output_layouts Replicate"
  std::string reason;
};

/// The steps of each tensor, in order.
using BoundarySteps = SmallVector<SmallVector<LayoutStep, 2>>;

struct ParameterPlacement {
  nn::ParameterOp op;
  Placement placement;
};

/// What one style asks for one call of a module. A style fills it in; each
/// placement is checked against the tensor's shape on the way.
class ModuleRequests {
public:
  ModuleRequests(nn::ModuleOp module, const MeshAxis &axis, StringRef style)
      : inputs(module.getInputs().size()), outputs(module.getNumResults()),
        module(module), axis(axis), style(style) {}

  nn::ModuleOp getModule() { return module; }
  /// What an error calls the module: "'layers.0.wq'" or "the root module".
  std::string describeModule();

  /// Reports a problem with the module, at a place in the plan.
  void reportError(FileLineColLoc loc, const Twine &message) {
    errors.emplace_back(loc, message.str());
  }

  void placeParameter(nn::ParameterOp parameter, Placement placement,
                      FileLineColLoc loc);
  /// `argument` is the name of what asks for it, `loc` its place.
  void layoutInput(unsigned index, Placement placement, StringRef argument,
                   FileLineColLoc loc);
  void layoutOutput(unsigned index, Placement placement, StringRef argument,
                    FileLineColLoc loc);

  SmallVector<ParameterPlacement> parameters;
  BoundarySteps inputs, outputs;
  SmallVector<std::pair<FileLineColLoc, std::string>> errors;

private:
  /// Counts a Shard's dimension from 0 and checks that it exists and divides.
  std::optional<Placement> resolve(Placement placement, Type type,
                                   const Twine &tensor, FileLineColLoc loc);
  void addStep(SmallVectorImpl<LayoutStep> &steps, Placement placement,
               Type type, const Twine &tensor, StringRef argument,
               FileLineColLoc loc);

  nn::ModuleOp module;
  const MeshAxis &axis;
  StringRef style;
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
  /// A set of StyleAspects.
  virtual unsigned getAspects() const = 0;

  /// Checks arguments against each other, emitting errors in the plan.
  virtual LogicalResult verify(const Arguments &arguments) const {
    return success();
  }
  /// Asks for what the style means for `requests.getModule()`, or reports there
  /// why it can't be applied to it.
  virtual void apply(const Arguments &arguments,
                     ModuleRequests &requests) const = 0;
};

/// Makes a style known to plans. Not to be called while plans are checked.
void registerStyle(std::unique_ptr<Style> style);

/// The style called `name`, or null.
const Style *lookupStyle(StringRef name);

/// The names of all styles, as registered.
SmallVector<StringRef> getStyleNames();

} // namespace mlir::tp::plan

#endif // TP_PLAN_STYLE_H
