//===- ExplainEdits.cpp - Edits that leave less to move -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The value of an edit is its effect on the whole program, so each edit is
// tried: the plan, or the IR if there is no plan, is changed, and everything is
// propagated again.
//
//===----------------------------------------------------------------------===//

#include "Explain.h"
#include "Transforms/PlanWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Plan/Edit.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::explain;

/// The most edits to show for a movement.
constexpr size_t kMaxEdits = 3;
/// How many steps of a chain are searched for the causes of a redistribution.
constexpr size_t kMaxSteps = 6;

//===----------------------------------------------------------------------===//
// Outcomes
//===----------------------------------------------------------------------===//

namespace {

/// Identifies a redistribution, both in this program and in one with an edit.
struct Moved {
  /// Where the value is computed, before any redistribution, and its type.
  std::pair<const void *, const void *> origin;
  /// Where it is needed: the location, name and operand of an op.
  std::tuple<const void *, const void *, int64_t> consumer;
  /// The placements, if a value is redistributed.
  std::string change;
  /// The bytes of all its executions together.
  int64_t bytes;
};

/// The costs of a program.
struct Outcome {
  int64_t bytes = 0, collectives = 0, work = 0, parameterBytes = 0;
  std::vector<Moved> movements;
  /// "argument 0" and its placement, for each argument and result of each root.
  std::vector<std::pair<std::string, std::string>> interface;
};

/// A change of the IR.
struct IREdit {
  std::string place, text;
  std::function<void(IRMapping &)> apply;
};

} // namespace

static Moved describe(const ExplainedMovement &movement, MeshOp mesh) {
  Value origin = movement.value;
  while (Operation *op = origin.getDefiningOp()) {
    if (!isa<RedistributeOp, ConstraintOp>(op))
      break;
    origin = op->getOperand(0);
  }
  Operation *op = movement.op;
  return {{origin.getLoc().getAsOpaquePointer(),
           movement.type.getAsOpaquePointer()},
          {op->getLoc().getAsOpaquePointer(),
           op->getName().getAsOpaquePointer(),
           movement.operand ? int64_t(*movement.operand) : -1},
          movement.from ? printPlacements(movement.from, mesh) + " to " +
                              printPlacements(movement.to, mesh)
                        : "",
          movement.bytes * movement.times};
}

static Outcome getOutcome(const Propagation &propagation,
                          const Explanation &explanation, MeshOp mesh,
                          ArrayRef<func::FuncOp> roots) {
  Outcome outcome;
  outcome.bytes = explanation.getBytes();
  outcome.collectives = explanation.getNumCollectives();
  outcome.work = propagation.getCost().work;
  for (const ExplainedMovement &movement : explanation.movements)
    outcome.movements.push_back(describe(movement, mesh));
  llvm::StringSet<> seen;
  for (const Propagation::Function &function : propagation.getFunctions()) {
    func::FuncOp op = function.op;
    op.walk([&](ParameterOpInterface parameter) {
      ShardingAttr sharding = function.shardings.lookup(parameter.getResult());
      if (!sharding || !seen.insert(parameter.getFqn()).second)
        return;
      // The first rank's block is the largest.
      RankedTensorType type =
          getLocalType(parameter.getType(), sharding, mesh, 0);
      outcome.parameterBytes += getTensorBytes(type);
    });
    if (!llvm::is_contained(roots, op))
      continue;
    auto add = [&](StringRef what, unsigned index, ShardingAttr sharding) {
      if (sharding)
        outcome.interface.push_back({(what + " " + Twine(index)).str(),
                                     printPlacements(sharding, mesh)});
    };
    for (BlockArgument argument : op.getArguments())
      add("argument", argument.getArgNumber(),
          function.shardings.lookup(argument));
    for (OpOperand &operand :
         op.getBody().front().getTerminator()->getOpOperands()) {
      ShardingAttr sharding = function.needed.lookup(&operand);
      add("result", operand.getOperandNumber(),
          sharding ? sharding : function.shardings.lookup(operand.get()));
    }
  }
  return outcome;
}

/// The costs of `model` with its fixed placements; nullopt if it can't be
/// propagated.
static std::optional<Outcome> evaluate(ModuleOp model,
                                       PropagationOptions options) {
  FailureOr<MeshOp> mesh = getMesh(model);
  if (failed(mesh) || !*mesh)
    return std::nullopt;
  inlineModules(model);
  FailureOr<SmallVector<func::FuncOp>> roots = getRoots(model);
  if (failed(roots))
    return std::nullopt;
  Propagation propagation(*mesh, options);
  if (failed(propagation.run(*roots)))
    return std::nullopt;
  FailureOr<Explanation> explanation =
      Explanation::explain(propagation, *mesh, /*withChains=*/false);
  if (failed(explanation))
    return std::nullopt;
  return getOutcome(propagation, *explanation, *mesh, *roots);
}

//===----------------------------------------------------------------------===//
// Edits of the IR
//===----------------------------------------------------------------------===//

/// Other placements of a tensor over mesh dimension `axis`, with those over all
/// other mesh dimensions as in `sharding`.
static SmallVector<ShardingAttr> getOtherShardings(ShardingAttr sharding,
                                                   StringRef axis) {
  ShardingAttr whole = sharding.without(axis);
  SmallVector<ShardingAttr> others = {whole};
  auto ref = AxisRefAttr::get(sharding.getContext(), axis);
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    others.push_back(whole.withShard(ref, dim));
  llvm::erase(others, sharding);
  return others;
}

static std::string printSharding(ShardingAttr sharding) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "<@" << sharding.getMesh().getValue() << ", ";
  sharding.printPlacement(os);
  return text + ">";
}

static std::string printPlace(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (auto parameter = dyn_cast<ParameterOpInterface>(op))
    return "'" + parameter.getFqn().str() + "'";
  std::string place = printLocation(op->getLoc());
  return place.empty() ? name : name + " at " + place;
}

/// Proposes edits of the attribute or op that fixes a placement over mesh
/// dimension `axis`.
static void proposeIREdits(const PlacementSource &source, StringRef axis,
                           FlatSymbolRefAttr mesh, std::vector<IREdit> &edits) {
  auto getText = [](ShardingAttr sharding) {
    return "tp.sharding = " + printSharding(sharding);
  };
  func::FuncOp function = source.function;
  unsigned index = source.index;
  std::string owner = " of @" + function.getSymName().str();
  auto lookup = [](IRMapping &mapping, Operation *op) {
    return mapping.lookup(op);
  };
  switch (source.kind) {
  case PlacementSource::Body:
    return;
  case PlacementSource::Argument:
  case PlacementSource::Result: {
    bool isArgument = source.kind == PlacementSource::Argument;
    Type type = isArgument ? function.getArgumentTypes()[index]
                           : function.getResultTypes()[index];
    ShardingAttr sharding = isArgument ? getArgSharding(function, index)
                                       : getResultSharding(function, index);
    if (!sharding)
      sharding = ShardingAttr::getReplicated(
          mesh, cast<RankedTensorType>(type).getRank());
    for (ShardingAttr other : getOtherShardings(sharding, axis))
      edits.push_back({(isArgument ? "argument " : "result ") +
                           std::to_string(index) + owner,
                       getText(other), [=](IRMapping &mapping) {
                         auto copy = cast<func::FuncOp>(
                             lookup(mapping, source.function));
                         if (isArgument)
                           copy.setArgAttr(index, kShardingAttr, other);
                         else
                           copy.setResultAttr(index, kShardingAttr, other);
                       }});
    return;
  }
  case PlacementSource::Attribute: {
    Operation *op = source.op;
    edits.push_back(
        {"tp.sharding on " + printPlace(op), "", [=](IRMapping &mapping) {
           lookup(mapping, op)->removeAttr(kShardingAttr);
           lookup(mapping, op)->removeAttr(kShardingsAttr);
         }});
    auto sharding = op->getAttrOfType<ShardingAttr>(kShardingAttr);
    if (!sharding)
      return;
    for (ShardingAttr other : getOtherShardings(sharding, axis))
      edits.push_back({"tp.sharding on " + printPlace(op), getText(other),
                       [=](IRMapping &mapping) {
                         lookup(mapping, op)->setAttr(kShardingAttr, other);
                       }});
    return;
  }
  case PlacementSource::Op:
    break;
  }
  Operation *op = source.op;
  if (!isa<RedistributeOp, ConstraintOp>(op))
    return;
  edits.push_back({printPlace(op), "", [=](IRMapping &mapping) {
                     Operation *copy = lookup(mapping, op);
                     copy->getResult(0).replaceAllUsesWith(copy->getOperand(0));
                     copy->erase();
                   }});
  auto sharding = op->getAttrOfType<ShardingAttr>("sharding");
  for (ShardingAttr other : getOtherShardings(sharding, axis))
    edits.push_back(
        {printPlace(op), "to " + printSharding(other), [=](IRMapping &mapping) {
           lookup(mapping, op)->setAttr("sharding", other);
         }});
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

namespace {

class Editor {
public:
  Editor(Program &program, const Outcome &base, ModuleOp original,
         PropagationOptions options, unsigned limit)
      : program(program), base(base), original(original), options(options),
        limit(limit) {}

  void run() {
    for (const ExplainedMovement &movement : program.explanation.movements) {
      std::vector<TriedEdit> &edits = program.edits.emplace_back();
      if (program.plan)
        tryPlanEdits(movement, edits);
      else
        tryIREdits(movement, edits);
      rank(edits);
    }
  }

private:
  using Change = function_ref<OwningOpRef<ModuleOp>()>;

  void tryPlanEdits(const ExplainedMovement &movement,
                    std::vector<TriedEdit> &edits);
  void tryIREdits(const ExplainedMovement &movement,
                  std::vector<TriedEdit> &edits);
  /// Adds `edit`, for which `change` makes the program, if it reduces both
  /// `movement` and the total.
  void consider(TriedEdit edit, const ExplainedMovement &movement,
                Change change, std::vector<TriedEdit> &edits);
  static void rank(std::vector<TriedEdit> &edits);
  SmallVector<StringRef> getModules(const ExplainedMovement &movement);

  /// Bytes and collectives, weighted as in the propagation.
  int64_t getVolume(const Outcome &outcome) const {
    return outcome.bytes + options.latencyBytes *
                               MeshOp(program.mesh).getNumRanks() *
                               outcome.collectives;
  }

  Program &program;
  const Outcome &base;
  ModuleOp original;
  PropagationOptions options;
  unsigned limit;
  /// By description of the edit; nullopt for an invalid one.
  std::map<std::string, std::optional<Outcome>> known;
};

} // namespace

void Editor::consider(TriedEdit edit, const ExplainedMovement &movement,
                      Change change, std::vector<TriedEdit> &edits) {
  std::string name = edit.action + " " + edit.place + " " + edit.text;
  auto it = known.find(name);
  if (it == known.end()) {
    if (program.trials == limit) {
      program.isCutShort = true;
      return;
    }
    ++program.trials;
    // An invalid edit isn't the user's error.
    ScopedDiagnosticHandler silence(original.getContext(),
                                    [](Diagnostic &) { return success(); });
    OwningOpRef<ModuleOp> model = change();
    it = known.emplace(name, model ? evaluate(*model, options) : std::nullopt)
             .first;
  }
  // Don't trade fewer collectives for more bytes.
  if (!it->second || getVolume(*it->second) >= getVolume(base) ||
      it->second->bytes > base.bytes)
    return;
  const Outcome &outcome = *it->second;
  Moved own = describe(movement, program.mesh);
  auto getBytes = [&](const Outcome &outcome) {
    int64_t bytes = 0;
    for (const Moved &moved : outcome.movements)
      bytes += moved.origin == own.origin ? moved.bytes : 0;
    return bytes;
  };
  int64_t less = getBytes(base) - getBytes(outcome);
  if (less <= 0)
    return;
  // A redistribution that another one replaces isn't removed.
  bool isLeft = llvm::any_of(outcome.movements, [&](const Moved &moved) {
    return moved.origin == own.origin &&
           (moved.consumer == own.consumer || moved.change == own.change);
  });
  edit.removes =
      !isLeft && less >= own.bytes && base.bytes - outcome.bytes >= own.bytes;
  edit.bytes = outcome.bytes - base.bytes;
  edit.collectives = outcome.collectives - base.collectives;
  edit.parameterBytes = outcome.parameterBytes - base.parameterBytes;
  edit.work = static_cast<double>(outcome.work) /
              static_cast<double>(std::max<int64_t>(base.work, 1));
  for (auto [now, then] : llvm::zip(base.interface, outcome.interface))
    if (now.second != then.second)
      edit.interface.push_back(now.first + " becomes " + then.second +
                               " instead of " + now.second);
  edits.push_back(std::move(edit));
}

void Editor::rank(std::vector<TriedEdit> &edits) {
  auto getCost = [](const TriedEdit &edit) {
    return std::tuple(edit.hasPrice(), !edit.interface.empty(), edit.bytes,
                      edit.collectives, !edit.removes);
  };
  llvm::stable_sort(edits, [&](const TriedEdit &a, const TriedEdit &b) {
    return getCost(a) < getCost(b);
  });
  // Of the edits in one place with the same cost, keep the smallest.
  std::vector<TriedEdit> best;
  for (TriedEdit &edit : edits)
    if (llvm::none_of(best, [&](const TriedEdit &other) {
          return other.place == edit.place && getCost(other) == getCost(edit);
        }))
      best.push_back(std::move(edit));
  if (best.size() > kMaxEdits)
    best.resize(kMaxEdits);
  edits = std::move(best);
}

//===----------------------------------------------------------------------===//
// Which edits
//===----------------------------------------------------------------------===//

/// The modules of ops and parameters near `movement`.
SmallVector<StringRef> Editor::getModules(const ExplainedMovement &movement) {
  llvm::SmallSetVector<StringRef, 8> modules;
  auto add = [&](StringRef fqn) {
    if (!fqn.empty())
      modules.insert(fqn);
  };
  auto addOp = [&](Operation *op) {
    add(getFqn(op));
    if (auto parameter = dyn_cast<ParameterOpInterface>(op))
      add(parameter.getFqn().rsplit('.').first);
  };
  add(movement.fqn);
  addOp(movement.op);
  if (Operation *producer = movement.value.getDefiningOp())
    addOp(producer);
  for (const ExplainedMovement::Conflict &conflict : movement.conflicts)
    for (const PlacementChain *chain :
         {&conflict.current, &conflict.required}) {
      if (chain->source && chain->source->op)
        addOp(chain->source->op);
      for (const PlacementChain::Step &step : llvm::drop_begin(
               chain->steps,
               chain->steps.size() - std::min(chain->steps.size(), kMaxSteps)))
        addOp(step.op);
    }
  // The op's users may need another layout of its results.
  for (Value result : movement.op->getResults())
    for (Operation *user : result.getUsers())
      addOp(user);
  return llvm::to_vector(modules);
}

void Editor::tryPlanEdits(const ExplainedMovement &movement,
                          std::vector<TriedEdit> &edits) {
  for (const plan::PlanEdit &edit :
       plan::proposeEdits(*program.plan, getModules(movement))) {
    using Action = plan::PlanEdit::Action;
    TriedEdit tried;
    tried.place = plan::printReason(edit.changed.loc, "");
    tried.place.resize(tried.place.size() - 2); // without ": "
    tried.text = plan::printEntry(edit.changed);
    tried.action = edit.action == Action::Replace  ? "replace"
                   : edit.action == Action::Remove ? "remove"
                                                   : "add";
    if (edit.action == Action::Remove)
      tried.text.clear();
    consider(
        std::move(tried), movement,
        [&]() -> OwningOpRef<ModuleOp> {
          OwningOpRef<ModuleOp> model = original.clone();
          plan::CheckedPlan plan;
          plan.file = plan::applyEdit(program.plan->file, edit);
          if (failed(plan::checkPlan(*model, plan)) ||
              failed(writePlan(plan, *model)))
            return {};
          return model;
        },
        edits);
  }
}

void Editor::tryIREdits(const ExplainedMovement &movement,
                        std::vector<TriedEdit> &edits) {
  auto mesh = FlatSymbolRefAttr::get(MeshOp(program.mesh).getSymNameAttr());
  std::vector<IREdit> proposed;
  for (const ExplainedMovement::Conflict &conflict : movement.conflicts)
    for (const PlacementChain *chain : {&conflict.current, &conflict.required})
      if (chain->source)
        proposeIREdits(*chain->source, conflict.axis, mesh, proposed);
  ModuleOp model = MeshOp(program.mesh)->getParentOfType<ModuleOp>();
  for (const IREdit &edit : proposed) {
    TriedEdit tried;
    tried.place = edit.place;
    tried.text = edit.text;
    tried.action = edit.text.empty() ? "remove" : "replace";
    consider(
        std::move(tried), movement,
        [&]() -> OwningOpRef<ModuleOp> {
          IRMapping mapping;
          OwningOpRef<ModuleOp> copy = cast<ModuleOp>(model->clone(mapping));
          edit.apply(mapping);
          return copy;
        },
        edits);
  }
}

void explain::tryEdits(Program &program, const Propagation &propagation,
                       ModuleOp original, PropagationOptions options,
                       unsigned limit) {
  auto model = program.mesh->getParentOfType<ModuleOp>();
  FailureOr<SmallVector<func::FuncOp>> roots = getRoots(model);
  if (failed(roots))
    return;
  // All movements, including those that aren't shown.
  FailureOr<Explanation> all =
      Explanation::explain(propagation, program.mesh, /*withChains=*/false);
  if (failed(all))
    return;
  Outcome base = getOutcome(propagation, *all, program.mesh, *roots);
  Editor(program, base, original, options, limit).run();
}
