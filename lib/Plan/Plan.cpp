//===- Plan.cpp - a plan, checked against a model -------------------------===//

#include "tp/Plan/Plan.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Plan/Pattern.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class PlanChecker {
public:
  PlanChecker(const PlanFile &file, ModuleOp model, CheckedPlan &plan)
      : plan(plan) {
    // Without a valid mesh, everything that doesn't depend on it is checked.
    axis = file.mesh.empty() ? MeshAxis{"tp", 1} : file.mesh[file.axis];
    plan.mesh = file.mesh;
    plan.axis = axis.name;
    model.walk([&](Operation *op) {
      if (auto module = dyn_cast<nn::ModuleOp>(op)) {
        modules[module.getFqnAttr()].push_back(module);
        tree.addModule(module.getFqn());
      } else if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
        tree.addParameter(parameter.getFqn());
      }
    });
  }

  LogicalResult check(const PlanEntry &entry) {
    bool valid = true;
    SmallVector<StringAttr> matched;
    for (auto &[fqn, calls] : modules)
      if (matchFqn(entry.pattern, fqn))
        matched.push_back(fqn);
    if (matched.empty()) {
      valid = false;
      emitError(entry.loc) << "pattern '" << entry.pattern
                           << "' matches no module: "
                           << tree.explainMismatch(entry.pattern);
    }

    const Style *style = lookupStyle(entry.style);
    if (!style) {
      SmallVector<StringRef> names = getStyleNames();
      std::string hint = suggestNearest(entry.style, names);
      if (hint.empty())
        hint = "; styles are " + llvm::join(names, ", ");
      return emitError(entry.styleLoc)
             << "unknown style '" << entry.style << "'" << hint;
    }
    Arguments arguments(entry.loc);
    if (failed(arguments.read(entry, style->getArguments())) ||
        failed(style->verify(arguments)))
      return failure();

    llvm::erase_if(matched, [&](StringAttr fqn) {
      bool claimed = succeeded(claim(fqn, entry, *style));
      valid &= claimed;
      return !claimed;
    });
    valid &= succeeded(apply(entry, *style, arguments, matched));
    return success(valid);
  }

private:
  struct Claim {
    const PlanEntry *entry;
    unsigned aspects;
  };

  /// Reports when an earlier entry decides the same about the module.
  LogicalResult claim(StringAttr fqn, const PlanEntry &entry,
                      const Style &style) {
    SmallVector<Claim> &earlier = claims[fqn];
    for (const Claim &other : earlier) {
      if (!(other.aspects & style.getAspects()))
        continue;
      // Once for two patterns that overlap, in however many modules.
      if (conflicts.insert({other.entry, &entry}).second) {
        InFlightDiagnostic error = emitError(entry.loc)
                                   << "module '" << fqn.getValue()
                                   << "' is matched by two entries";
        error.attachNote(other.entry->loc)
            << "it has " << other.entry->style << " from '"
            << other.entry->pattern << "' here";
      }
      return failure();
    }
    earlier.push_back({&entry, style.getAspects()});
    return success();
  }

  /// Applies the style to every call of the modules. A problem that several
  /// modules have is reported for the first one, and the others are counted.
  LogicalResult apply(const PlanEntry &entry, const Style &style,
                      const Arguments &arguments,
                      ArrayRef<StringAttr> matched) {
    bool valid = true;
    StringAttr firstFailed;
    llvm::SetVector<StringAttr> alsoFailed;
    SmallVector<std::pair<FileLineColLoc, std::string>> errors;
    for (StringAttr fqn : matched) {
      for (nn::ModuleOp module : modules[fqn]) {
        ModuleRequests requests(module, axis, style.getName());
        style.apply(arguments, requests);
        if (requests.errors.empty()) {
          for (ParameterPlacement &parameter : requests.parameters)
            valid &= succeeded(place(parameter, entry));
          plan.modules.push_back({module, std::move(requests.inputs),
                                  std::move(requests.outputs)});
          continue;
        }
        if (!firstFailed) {
          firstFailed = fqn;
          errors = std::move(requests.errors);
        } else if (fqn != firstFailed) {
          alsoFailed.insert(fqn);
        }
      }
    }
    for (auto [index, error] : llvm::enumerate(errors)) {
      InFlightDiagnostic diagnostic = emitError(error.first) << error.second;
      if (index == 0 && !alsoFailed.empty())
        diagnostic.attachNote(entry.loc)
            << "the pattern matches " << alsoFailed.size() << " more module"
            << (alsoFailed.size() == 1 ? "" : "s")
            << " that can't have this style, such as '"
            << alsoFailed.front().getValue() << "'";
    }
    return success(valid && errors.empty());
  }

  /// Gives a parameter its placement; a tied one must get the same from all.
  LogicalResult place(ParameterPlacement parameter, const PlanEntry &entry) {
    StringAttr fqn = parameter.op.getFqnAttr();
    auto [it, inserted] = plan.parameters.insert({fqn, parameter.placement});
    if (inserted) {
      placedBy[fqn] = &entry;
      return success();
    }
    if (it->second == parameter.placement)
      return success();
    const PlanEntry *other = placedBy[fqn];
    if (conflicts.insert({other, &entry}).second) {
      InFlightDiagnostic error = emitError(entry.loc)
                                 << "parameter '" << fqn.getValue() << "' gets "
                                 << parameter.placement.str() << " here, and "
                                 << it->second.str() << " from another entry";
      error.attachNote(other->loc)
          << it->second.str() << " comes from '" << other->pattern << "' here";
    }
    return failure();
  }

  CheckedPlan &plan;
  MeshAxis axis;
  ModuleTree tree;
  llvm::MapVector<StringAttr, SmallVector<nn::ModuleOp, 1>> modules;
  llvm::DenseMap<StringAttr, SmallVector<Claim>> claims;
  llvm::DenseMap<StringAttr, const PlanEntry *> placedBy;
  /// Pairs of entries whose conflict was reported.
  llvm::DenseSet<std::pair<const PlanEntry *, const PlanEntry *>> conflicts;
};

} // namespace

LogicalResult plan::checkPlan(const PlanFile &file, ModuleOp model,
                              CheckedPlan &plan) {
  PlanChecker checker(file, model, plan);
  bool valid = true;
  for (const PlanEntry &entry : file.entries)
    valid &= succeeded(checker.check(entry));
  return success(valid);
}

FailureOr<CheckedPlan> plan::loadPlan(StringRef path, ModuleOp model) {
  PlanFile file;
  CheckedPlan plan;
  bool valid = succeeded(readPlan(path, model.getContext(), file));
  valid &= succeeded(checkPlan(file, model, plan));
  if (!valid)
    return failure();
  return plan;
}
