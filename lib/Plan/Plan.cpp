//===- Plan.cpp - A plan, checked against a model -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Plan/Plan.h"
#include "BatchInputs.h"
#include "Evenness.h"
#include "Experts.h"
#include "FsdpGroups.h"
#include "Stages.h"
#include "Styles/Styles.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Reductions.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

static bool intersect(const AxisSet &a, const AxisSet &b) {
  return llvm::any_of(
      a, [&](unsigned axis) { return llvm::is_contained(b, axis); });
}

SmallVector<AxisPlacement> CheckedPlan::getPlacements(StringAttr fqn) const {
  SmallVector<AxisPlacement> placements;
  auto it = parameters.find(fqn);
  if (it != parameters.end())
    for (const ParameterLayout &layout : it->second)
      placements.push_back(layout.over);
  return placements;
}

int64_t CheckedPlan::getBytesPerRank(ParameterOpInterface parameter) const {
  RankedTensorType type = parameter.getType();
  SmallVector<int64_t> shape(type.getShape());
  auto split = [&](int64_t dim, unsigned axis) {
    shape[dim] = llvm::divideCeil(shape[dim], file.mesh[axis].size);
  };
  for (const AxisPlacement &over : getPlacements(parameter.getFqnAttr()))
    if (over.placement.isShard())
      for (unsigned axis : over.axes)
        split(over.placement.dim, axis);
  bool hasExperts = expertParameters.contains(parameter.getFqnAttr());
  if (hasExperts)
    split(0, file.experts->axis);
  if (!shape.empty() && !parameter->hasAttr(kBufferAttr))
    for (const DataAxis &data : file.data)
      if (data.style == DataAxis::FSDP &&
          !(hasExperts && data.axis == file.experts->axis))
        split(0, data.axis);
  return getTensorBytes(type.clone(shape));
}

namespace {

/// The modules and parameters of a model by FQN.
struct ModelIndex {
  explicit ModelIndex(ModuleOp model) {
    model.walk([&](Operation *op) {
      if (auto module = dyn_cast<ModuleOpInterface>(op)) {
        modules[module.getFqnAttr()].push_back(module);
        tree.addModule(module.getFqn());
      } else if (auto parameter = dyn_cast<ParameterOpInterface>(op)) {
        if (parameters.insert({parameter.getFqnAttr(), parameter}).second)
          tree.addParameter(parameter.getFqn());
      } else if (auto loss = dyn_cast<nn::CrossEntropyOp>(op)) {
        losses.push_back(loss);
      }
    });
  }

  ModuleCalls modules;
  llvm::MapVector<StringAttr, ParameterOpInterface> parameters;
  SmallVector<nn::CrossEntropyOp> losses;
  ModuleTree tree;
};

class PlanChecker {
public:
  PlanChecker(ModuleOp model, CheckedPlan &plan)
      : model(model), plan(plan), index(model),
        meshName(FlatSymbolRefAttr::get(model.getContext(), "mesh")) {
    for (const PlanGroup &group : plan.file.groups) {
      // Even without a valid mesh, check everything that doesn't depend on it.
      MeshGroup &mesh = plan.groups.emplace_back();
      mesh.axes = group.axes;
      for (unsigned axis : mesh.axes) {
        mesh.name +=
            (mesh.name.empty() ? "" : ", ") + plan.file.mesh[axis].name;
        mesh.size *= plan.file.mesh[axis].size;
      }
    }
  }

  LogicalResult check() {
    bool valid = true;
    for (groupIndex = 0; groupIndex < plan.groups.size(); ++groupIndex) {
      for (PlanEntry &entry : plan.file.groups[groupIndex].entries)
        valid &= succeeded(check(entry));
      if (getFileGroup().lossParallel)
        valid &= succeeded(splitLosses());
    }
    if (!plan.file.mesh.empty())
      valid &= succeeded(checkShardings());
    valid &= succeeded(findBatch(model, plan));
    valid &= succeeded(findSequence(model, plan));
    valid &= succeeded(checkExperts(model, plan));
    valid &= succeeded(findFsdpGroups(model, plan));
    valid &= succeeded(findStages(model, index.modules, index.tree, plan));
    return success(succeeded(checkReductions()) && valid);
  }

private:
  const PlanGroup &getFileGroup() const { return plan.file.groups[groupIndex]; }
  const MeshGroup &getGroup() const { return plan.groups[groupIndex]; }

  //===--------------------------------------------------------------------===//
  // Entries
  //===--------------------------------------------------------------------===//

  /// The modules that an entry matches, or else the parameters.
  struct Matches {
    SmallVector<StringAttr> modules;
    SmallVector<ParameterOpInterface> parameters;

    bool empty() const { return modules.empty() && parameters.empty(); }
  };

  LogicalResult check(PlanEntry &entry) {
    MatchMode mode = getFileGroup().match;
    if (std::string error = checkPattern(entry.pattern, mode); !error.empty()) {
      constexpr size_t kMaxShown = 200;
      StringRef pattern = entry.pattern;
      return emitError(entry.loc)
             << "'" << pattern.take_front(kMaxShown)
             << (pattern.size() > kMaxShown ? "…' " : "' ") << error;
    }
    const Style *style = nullptr;
    if (entry.direct.empty()) {
      style = lookupStyle(model.getContext(), entry.style);
      if (!style)
        return emitUnknownStyle(entry, model.getContext());
    }
    Matches matches = match(entry, style);
    bool valid = !matches.empty() || isRepeatedMatch(entry, style) ||
                 succeeded(reportUnmatched(entry));
    if (!style)
      return success(placeDirectly(entry, matches.parameters) && valid);

    Arguments arguments(entry.loc);
    if (failed(renameArguments(entry, style->getAliases(entry))) ||
        failed(arguments.read(entry, style->getArguments())) ||
        failed(style->verify(arguments, getGroup())))
      return failure();

    bool matchedAny = !matches.modules.empty();
    const PlanEntry *shadow = nullptr;
    llvm::erase_if(matches.modules, [&](StringAttr fqn) {
      // With regular expressions, the first matching entry wins.
      const PlanEntry *earlier = findClaim(fqn, style->getAspects());
      if (earlier && mode == MatchMode::Regex) {
        shadow = earlier;
        return true;
      }
      if (earlier && repeats(*earlier, entry))
        return true;
      bool claimed = succeeded(claim(fqn, entry, style->getAspects()));
      valid &= claimed;
      return !claimed;
    });
    if (shadow && matchedAny && matches.modules.empty())
      plan.findings.push_back(
          {"shadowed", entry.loc,
           "'" + entry.pattern + "' is shadowed by '" + shadow->pattern +
               "': all that it matches has a style from there",
           "", "remove the entry, or move it before the other one"});
    valid &= succeeded(apply(entry, *style, arguments, matches));
    return success(valid);
  }

  Matches match(const PlanEntry &entry, const Style *style) {
    MatchMode mode = getFileGroup().match;
    Matches matches;
    if (style)
      for (auto &[fqn, calls] : index.modules)
        if (matchFqn(entry.pattern, fqn, mode))
          matches.modules.push_back(fqn);
    // A regular expression only matches a prefix, so it also matches inner
    // modules; vLLM only considers each nn.Linear.
    auto isAccepted = [&](StringAttr fqn) {
      return style->accepts(index.modules[fqn].front());
    };
    if (mode == MatchMode::Regex && llvm::any_of(matches.modules, isAccepted))
      llvm::erase_if(matches.modules,
                     [&](StringAttr fqn) { return !isAccepted(fqn); });
    Style::ParameterUse use =
        style ? style->getParameterUse() : Style::ParameterUse::Named;
    if (!matches.modules.empty() || use == Style::ParameterUse::None)
      return matches;
    for (auto &[fqn, parameter] : index.parameters) {
      StringRef holder = fqn.getValue().rsplit('.').first;
      bool named = use == Style::ParameterUse::Named &&
                   matchFqn(entry.pattern, fqn, mode);
      if (named || (style && fqn.getValue().contains('.') &&
                    matchFqn(entry.pattern, holder, mode)))
        matches.parameters.push_back(parameter);
    }
    return matches;
  }

  /// Whether two entries are one rule with two keys. Version 4 of transformers
  /// states each rule for the base model and for the model around it.
  bool repeats(const PlanEntry &a, const PlanEntry &b) {
    auto isInner = [](StringRef inner, StringRef outer) {
      return outer.split('.').second == inner;
    };
    return getFileGroup().match == MatchMode::HuggingFace &&
           a.style == b.style && a.direct == b.direct && a.arguments.empty() &&
           b.arguments.empty() &&
           (isInner(a.pattern, b.pattern) || isInner(b.pattern, a.pattern));
  }

  /// Whether the entry's rule has another key, which matches.
  bool isRepeatedMatch(const PlanEntry &entry, const Style *style) {
    return llvm::any_of(getFileGroup().entries, [&](const PlanEntry &other) {
      return repeats(entry, other) && !match(other, style).empty();
    });
  }

  /// Whether any entry of the group matches something.
  bool matchesAny() {
    auto [it, isNew] = matching.try_emplace(groupIndex, false);
    if (isNew)
      it->second =
          llvm::any_of(getFileGroup().entries, [&](const PlanEntry &entry) {
            const Style *style = lookupStyle(model.getContext(), entry.style);
            return (style || !entry.direct.empty()) &&
                   !match(entry, style).empty();
          });
    return it->second;
  }

  LogicalResult reportUnmatched(const PlanEntry &entry) {
    bool direct = !entry.direct.empty();
    MatchMode mode = getFileGroup().match;
    auto fill = [&](InFlightDiagnostic diagnostic) -> LogicalResult {
      diagnostic << "pattern '" << entry.pattern << "' matches no "
                 << (direct ? "parameter: " : "module: ")
                 << (direct ? index.tree.explainNoParameter(entry.pattern, mode)
                            : index.tree.explainMismatch(entry.pattern, mode));
      return diagnostic;
    };
    if (!getFileGroup().allowUnmatched.value_or(
            mode == MatchMode::HuggingFace && matchesAny()))
      return fill(emitError(entry.loc));
    (void)fill(emitWarning(entry.loc));
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Conflicts between entries
  //===--------------------------------------------------------------------===//

  struct Claim {
    const PlanEntry *entry;
    unsigned aspects;
    AxisSet axes;
  };

  /// The earlier entry that sets one of the same aspects of the module over a
  /// mesh dimension of this group.
  const PlanEntry *findClaim(StringAttr fqn, unsigned aspects) {
    for (const Claim &other : claims[fqn])
      if ((other.aspects & aspects) && intersect(other.axes, getGroup().axes))
        return other.entry;
    return nullptr;
  }

  /// Reports an error if there is such an entry.
  LogicalResult claim(StringAttr fqn, const PlanEntry &entry,
                      unsigned aspects) {
    const PlanEntry *other = findClaim(fqn, aspects);
    if (!other) {
      claims[fqn].push_back({&entry, aspects, getGroup().axes});
      return success();
    }
    // Report two overlapping patterns once, for any number of modules.
    if (conflicts.insert({other, &entry}).second) {
      InFlightDiagnostic error = emitError(entry.loc)
                                 << "module '" << fqn.getValue()
                                 << "' is matched by two entries";
      error.attachNote(other->loc) << "it has " << other->style << " from '"
                                   << other->pattern << "' here";
    }
    return failure();
  }

  //===--------------------------------------------------------------------===//
  // Styles
  //===--------------------------------------------------------------------===//

  /// Applies the style to every call of the modules, or to the parameters. A
  /// problem of several modules is reported for the first one; the others are
  /// counted.
  LogicalResult apply(const PlanEntry &entry, const Style &style,
                      const Arguments &arguments, const Matches &matches) {
    bool valid = true;
    StringAttr firstFailed;
    llvm::SetVector<StringAttr> alsoFailed;
    SmallVector<std::pair<FileLineColLoc, std::string>> errors;
    auto fail = [&](StringAttr fqn, ModuleRequests &requests) {
      if (!firstFailed) {
        firstFailed = fqn;
        errors = std::move(requests.errors);
      } else if (fqn != firstFailed) {
        alsoFailed.insert(fqn);
      }
    };
    for (StringAttr fqn : matches.modules) {
      for (ModuleOpInterface module : index.modules[fqn]) {
        ModuleRequests requests(module, getGroup(), style.getName());
        style.apply(arguments, requests);
        gatherErrors(requests);
        if (requests.errors.empty())
          valid &= succeeded(accept(requests, entry, /*isChild=*/false));
        else
          fail(fqn, requests);
      }
    }
    for (ParameterOpInterface parameter : matches.parameters) {
      ModuleRequests requests(nullptr, getGroup(), style.getName());
      style.applyToParameter(parameter, arguments, requests);
      if (requests.errors.empty())
        valid &= succeeded(placeAll(requests, entry));
      else
        fail(parameter.getFqnAttr(), requests);
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

  /// Adds the errors of the children to those of the module.
  static void gatherErrors(ModuleRequests &requests) {
    requests.checkInputsAreKnown();
    for (std::unique_ptr<ModuleRequests> &child : requests.children) {
      gatherErrors(*child);
      llvm::append_range(requests.errors, child->errors);
    }
  }

  LogicalResult accept(ModuleRequests &requests, const PlanEntry &entry,
                       bool isChild) {
    bool valid = true;
    ModuleOpInterface module = requests.getModule();
    if (isChild && module == index.modules[module.getFqnAttr()].front())
      valid &= succeeded(
          claim(module.getFqnAttr(), entry, Parameters | Inputs | Outputs));
    valid &= succeeded(placeAll(requests, entry));
    plan.modules.push_back({module, module.getFqnAttr(), groupIndex, &entry,
                            std::move(requests.inputs),
                            std::move(requests.outputs), requests.python});
    for (std::unique_ptr<ModuleRequests> &child : requests.children)
      valid &= succeeded(accept(*child, entry, /*isChild=*/true));
    return success(valid);
  }

  LogicalResult placeAll(ModuleRequests &requests, const PlanEntry &entry) {
    bool valid = true;
    for (ParameterPlacement &parameter : requests.parameters)
      if (!isPlacedByName(parameter.op, entry))
        valid &= succeeded(place(parameter.op.getFqnAttr(), getGroup().axes,
                                 parameter.placement, entry, parameter.loc));
    llvm::append_range(plan.findings, requests.findings);
    return success(valid);
  }

  /// Whether a key that names the parameter decides instead of `entry`, which
  /// is for its module. This is transformers' order.
  bool isPlacedByName(ParameterOpInterface parameter, const PlanEntry &entry) {
    StringRef fqn = parameter.getFqn();
    return getFileGroup().match == MatchMode::HuggingFace &&
           !matchFqn(entry.pattern, fqn, MatchMode::HuggingFace) &&
           llvm::any_of(getFileGroup().entries, [&](const PlanEntry &other) {
             return matchFqn(other.pattern, fqn, MatchMode::HuggingFace);
           });
  }

  bool placeDirectly(const PlanEntry &entry,
                     ArrayRef<ParameterOpInterface> parameters) {
    bool valid = true;
    for (ParameterOpInterface parameter : parameters) {
      for (auto [position, placement] : llvm::enumerate(entry.direct)) {
        MeshGroup group = getGroup();
        if (entry.direct.size() > 1) {
          group.axes = {group.axes[position]};
          const MeshAxis &axis = plan.file.mesh[group.axes.front()];
          group.name = axis.name;
          group.size = axis.size;
        }
        ModuleRequests requests(nullptr, group, "");
        if (placement.isPartial())
          requests.reportError(
              entry.styleLoc,
              "parameter '" + parameter.getFqn() + "' can't be " +
                  placement.str() +
                  ": a weights file has whole values, not partial ones");
        else
          requests.placeParameter(parameter, placement, entry.styleLoc);
        for (auto &[loc, message] : requests.errors)
          emitError(loc) << message;
        valid &= requests.errors.empty();
        for (ParameterPlacement &placed : requests.parameters)
          valid &= succeeded(place(parameter.getFqnAttr(), group.axes,
                                   placed.placement, entry, placed.loc));
        llvm::append_range(plan.findings, requests.findings);
      }
    }
    return valid;
  }

  /// Gives a parameter its placement. All entries must give a tied parameter
  /// the same one.
  LogicalResult place(StringAttr fqn, const AxisSet &axes,
                      const Placement &placement, const PlanEntry &entry,
                      FileLineColLoc loc) {
    std::vector<ParameterLayout> &layouts = plan.parameters[fqn];
    AxisPlacement over{axes, placement};
    for (const ParameterLayout &other : layouts) {
      if (!intersect(other.over.axes, axes))
        continue;
      if (other.over == over)
        return success();
      if (conflicts.insert({other.entry, &entry}).second) {
        InFlightDiagnostic error =
            emitError(entry.loc)
            << "parameter '" << fqn.getValue() << "' gets " << placement.str()
            << " here, and " << other.over.placement.str()
            << " from another entry";
        error.attachNote(other.entry->loc)
            << other.over.placement.str() << " comes from '"
            << other.entry->pattern << "' here";
      }
      return failure();
    }
    layouts.push_back({over, &entry, loc});
    return success();
  }

  //===--------------------------------------------------------------------===//
  // loss_parallel
  //===--------------------------------------------------------------------===//

  LogicalResult splitLosses() {
    FileLineColLoc loc = getFileGroup().lossLoc;
    // Only a remark: users take plans for training to inference unchanged.
    if (index.losses.empty())
      emitRemark(loc)
          << "loss_parallel changes nothing: the model has no cross "
             "entropy";
    for (nn::CrossEntropyOp loss : index.losses) {
      auto logits = cast<RankedTensorType>(loss.getInput().getType());
      if (!loss.getLabelSmoothing().isZero()) {
        InFlightDiagnostic error =
            emitError(loc) << "loss_parallel doesn't support label smoothing";
        error.attachNote(loss.getLoc())
            << "this cross entropy smooths its labels";
        return error;
      }
      Placement placement = Placement::shard(logits.getRank() == 1 ? 0 : 1);
      if (auto finding =
              checkEvenness(placement, logits, "the logits of a cross entropy",
                            getGroup(), loc))
        plan.findings.push_back(std::move(*finding));
      plan.losses.push_back(
          {loss,
           groupIndex,
           {placement, printReason(loc, "loss_parallel " + placement.str()),
            "loss_parallel", loc, /*declared=*/true}});
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // The plan as a whole
  //===--------------------------------------------------------------------===//

  /// Whether the IR can express every placement.
  LogicalResult checkShardings() {
    bool valid = true;
    llvm::DenseSet<Attribute> reported;
    auto check = [&](ArrayRef<AxisPlacement> placements, Type type,
                     FileLineColLoc loc, const Twine &tensor) {
      (void)getSharding(placements, plan.file.mesh, meshName,
                        cast<RankedTensorType>(type).getShape(),
                        [&](const Twine &message) {
                          valid = false;
                          if (reported.insert(loc).second)
                            emitError(loc) << tensor << ": " << message;
                        });
    };
    for (auto &[fqn, layouts] : plan.parameters)
      check(plan.getPlacements(fqn), index.parameters[fqn].getType(),
            layouts.back().loc, "'" + fqn.getValue() + "'");
    for (ModuleLayouts &layouts : plan.modules) {
      auto checkSteps = [&](auto tensors, const BoundarySteps &boundary,
                            const Twine &what) {
        for (auto [tensor, steps] : llvm::zip(tensors, boundary))
          for (const LayoutStep &step : steps)
            check({{plan.groups[layouts.group].axes, step.placement}},
                  tensor.getType(), step.loc,
                  what + " of '" + layouts.module.getFqn() + "'");
      };
      checkSteps(layouts.module.getInputs(), layouts.inputs, "an input");
      checkSteps(layouts.module->getResults(), layouts.outputs, "an output");
    }
    return success(valid);
  }

  /// As in PyTorch, the reductions of a value over different mesh dimensions
  /// must be of one kind. The exception is sum with avg, because these commute.
  LogicalResult checkReductions() {
    struct Reduction {
      ReductionKind kind;
      const LayoutStep *step;
    };
    bool valid = true;
    llvm::DenseMap<std::pair<Operation *, unsigned>, Reduction> reductions;
    auto check = [&](ModuleOpInterface module, const BoundarySteps &boundary,
                     unsigned offset) {
      for (auto [index, steps] : llvm::enumerate(boundary)) {
        if (steps.empty() || !steps.back().placement.isPartial())
          continue;
        ReductionKind kind = steps.back().placement.reduction;
        auto [it, inserted] =
            reductions.insert({{module, static_cast<unsigned>(offset + index)},
                               {kind, &steps.back()}});
        ReductionKind other = it->second.kind;
        if (inserted || commute(kind, other))
          continue;
        valid = false;
        InFlightDiagnostic error =
            emitError(steps.back().loc)
            << steps.back().placement.str() << " can't be combined with "
            << it->second.step->placement.str()
            << ", the placement of the same tensor of '" << module.getFqn()
            << "' over another mesh dimension";
        error.attachNote(it->second.step->loc)
            << "the other placement is from here";
      }
    };
    for (ModuleLayouts &layouts : plan.modules) {
      check(layouts.module, layouts.inputs, 0);
      check(layouts.module, layouts.outputs, layouts.inputs.size());
    }
    return success(valid);
  }

  ModuleOp model;
  CheckedPlan &plan;
  ModelIndex index;
  FlatSymbolRefAttr meshName;
  /// The group that is being checked.
  unsigned groupIndex = 0;
  /// By group: whether any of its entries matches something.
  DenseMap<unsigned, bool> matching;
  llvm::DenseMap<StringAttr, SmallVector<Claim>> claims;
  /// Pairs of entries whose conflict was reported.
  llvm::DenseSet<std::pair<const PlanEntry *, const PlanEntry *>> conflicts;
};

} // namespace

LogicalResult plan::checkPlan(ModuleOp model, CheckedPlan &plan) {
  return PlanChecker(model, plan).check();
}

FailureOr<CheckedPlan> plan::loadPlan(StringRef path, ModuleOp model) {
  CheckedPlan plan;
  bool valid = succeeded(readPlan(path, model.getContext(), plan.file));
  valid &= succeeded(checkPlan(model, plan));
  if (!valid)
    return failure();
  return plan;
}
