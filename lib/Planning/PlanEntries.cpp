//===- PlanEntries.cpp - Placements of parameters as a plan ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanEntries.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Plan/Edit.h"
#include "tp/Plan/Pattern.h"
#include "tp/Plan/Style.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;
using plan::Placement;
using plan::PlanEntry;

/// Whether the parameter's placement belongs into a plan. Vectors, such as
/// biases, follow their weights and cost little.
static bool isWeight(ParameterOpInterface parameter) {
  return parameter.getType().getRank() >= 2;
}

namespace {

/// What one module or parameter gets: an entry without its pattern.
struct Request {
  std::string fqn;
  PlanEntry entry;
};

class EntryMaker {
public:
  EntryMaker(ModuleOp model, const MeshUse &use,
             const ParameterPlacements &placements)
      : placements(placements),
        loc(FileLineColLoc::get(model.getContext(), "auto-plan", 0, 0)) {
    group.axes = use.getTensorAxes();
    for (unsigned axis : group.axes) {
      group.name += (group.name.empty() ? "" : ", ") + use.mesh[axis].name;
      group.size *= use.mesh[axis].size;
    }
    model.walk([&](Operation *op) {
      if (auto module = dyn_cast<ModuleOpInterface>(op))
        modules[module.getFqnAttr()].push_back(module);
      else if (auto parameter = dyn_cast<ParameterOpInterface>(op))
        if (isWeight(parameter))
          weights.insert(parameter.getFqnAttr());
    });
    for (auto &[fqn, placement] : placements)
      names.push_back(fqn.str());
    for (auto &[fqn, calls] : modules)
      names.push_back(fqn.str());
  }

  std::vector<PlanEntry> run(StyledModules which);
  std::vector<PlanEntry> splitSequence(std::vector<PlanEntry> entries,
                                       bool declares);

private:
  PlanEntry makeEntry(const plan::Style &style) const;
  const plan::Style *findStyle(ModuleOpInterface module) const;
  bool places(const plan::Style &style, ModuleOpInterface module,
              plan::ModuleRequests &requests) const;
  void declareSequence(PlanEntry &entry) const;
  bool addStyled(StringRef fqn, ArrayRef<ModuleOpInterface> calls);
  std::vector<PlanEntry> generalize() const;
  bool matchesOnly(StringRef pattern, const llvm::StringSet<> &wanted) const;

  const ParameterPlacements &placements;
  FileLineColLoc loc;
  plan::MeshGroup group;
  /// The calls of each module.
  llvm::MapVector<StringAttr, SmallVector<ModuleOpInterface, 1>> modules;
  llvm::DenseSet<StringAttr> weights;
  /// The FQNs of all parameters and modules: what patterns might match.
  std::vector<std::string> names;
  std::vector<Request> requests;
};

} // namespace

static bool isSplit(ArrayRef<Placement> placements) {
  return llvm::any_of(placements, [](const Placement &placement) {
    return !placement.isReplicate();
  });
}

PlanEntry EntryMaker::makeEntry(const plan::Style &style) const {
  return {"", loc, style.getName().str(), loc, {}};
}

/// Whether `style`, with its default arguments, places the weights of `module`
/// as they are to be placed, and splits one of them.
bool EntryMaker::places(const plan::Style &style, ModuleOpInterface module,
                        plan::ModuleRequests &requested) const {
  plan::Arguments arguments(loc);
  PlanEntry entry = makeEntry(style);
  if (failed(arguments.read(entry, style.getArguments())) ||
      failed(style.verify(arguments, group)))
    return false;
  style.apply(arguments, requested);
  if (!requested.errors.empty() || !requested.children.empty())
    return false;
  bool splits = false;
  for (const plan::ParameterPlacement &parameter : requested.parameters) {
    ParameterOpInterface op = parameter.op;
    if (!isWeight(op))
      continue;
    splits |= !parameter.placement.isReplicate();
    const auto *wanted = placements.find(op.getFqnAttr());
    if (wanted == placements.end() ||
        llvm::any_of(wanted->second, [&](const Placement &placement) {
          return placement != parameter.placement;
        }))
      return false;
  }
  return splits;
}

const plan::Style *EntryMaker::findStyle(ModuleOpInterface module) const {
  MLIRContext *context = module->getContext();
  for (StringRef name : {"ColwiseParallel", "RowwiseParallel"}) {
    const plan::Style *style = plan::lookupStyle(context, name);
    if (!style->accepts(module))
      continue;
    plan::ModuleRequests requested(module, group, name);
    if (places(*style, module, requested))
      return style;
  }
  return nullptr;
}

/// Whether `value`, an output of a module, is a result of the function, as far
/// as modules only pass it on.
static bool isFunctionResult(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<func::ReturnOp>(user))
      return true;
    return user->hasTrait<OpTrait::IsTerminator>() &&
           isa<ModuleOpInterface>(user->getParentOp()) &&
           isFunctionResult(
               user->getParentOp()->getResult(use.getOperandNumber()));
  });
}

/// Adds a request of a style for the module that `calls` call. Returns whether
/// there is such a style.
bool EntryMaker::addStyled(StringRef fqn, ArrayRef<ModuleOpInterface> calls) {
  const plan::Style *style = findStyle(calls.front());
  if (!style)
    return false;
  PlanEntry entry = makeEntry(*style);
  // Without its own layout, a result would stay split, which changes the
  // program's interface.
  bool hasLayout = llvm::any_of(style->getArguments(), [](auto &argument) {
    return argument.name == "output_layouts" &&
           argument.defaultText != "Replicate";
  });
  bool givesResult = llvm::any_of(calls, [](ModuleOpInterface module) {
    return llvm::any_of(module->getResults(), isFunctionResult);
  });
  if (hasLayout && givesResult) {
    YamlValue value(loc);
    value.kind = YamlValue::Kind::Scalar;
    value.text = "Replicate";
    entry.arguments.push_back({"output_layouts", loc, std::move(value)});
  }
  requests.push_back({fqn.str(), std::move(entry)});
  return true;
}

bool EntryMaker::matchesOnly(StringRef pattern,
                             const llvm::StringSet<> &wanted) const {
  return llvm::all_of(names, [&](StringRef name) {
    return wanted.contains(name) || !plan::matchFqn(pattern, name);
  });
}

/// `a` and `b` as one pattern, if they differ in one character, or in one
/// character of a bracket: `w[qk]` and `wv` are `w[qkv]`.
static std::optional<std::string> joinPatterns(StringRef a, StringRef b) {
  size_t begin = 0;
  while (begin < std::min(a.size(), b.size()) && a[begin] == b[begin] &&
         a[begin] != '[')
    ++begin;
  size_t end = 0;
  while (end < std::min(a.size(), b.size()) - begin &&
         a[a.size() - 1 - end] == b[b.size() - 1 - end])
    ++end;
  StringRef first = a.drop_front(begin).drop_back(end),
            second = b.drop_front(begin).drop_back(end);
  bool isBracket = first.consume_front("[") && first.consume_back("]");
  if (second.size() != 1 || !llvm::isAlnum(second.front()) || first.empty() ||
      (!isBracket && first.size() != 1) || !llvm::all_of(first, llvm::isAlnum))
    return std::nullopt;
  return (a.take_front(begin) + "[" + first + second + "]" + a.take_back(end))
      .str();
}

/// Joins requests for the same into entries. Each pattern matches only what it
/// is for.
std::vector<PlanEntry> EntryMaker::generalize() const {
  struct Pattern {
    PlanEntry entry;
    llvm::StringSet<> matched;
  };
  std::vector<Pattern> patterns;
  auto isSame = [](PlanEntry a, PlanEntry b) {
    a.pattern = b.pattern = "";
    return plan::printEntry(a) == plan::printEntry(b);
  };
  // Numbers first.
  for (const Request &request : requests) {
    std::string general =
        plan::getPattern(request.fqn, plan::MatchMode::Fnmatch);
    auto known = llvm::find_if(patterns, [&](const Pattern &pattern) {
      return pattern.entry.pattern == general &&
             isSame(pattern.entry, request.entry);
    });
    if (known == patterns.end()) {
      patterns.push_back({request.entry, {}});
      known = std::prev(patterns.end());
      known->entry.pattern = general;
    }
    known->matched.insert(request.fqn);
  }
  std::vector<Pattern> exact;
  for (Pattern &pattern : patterns) {
    if (matchesOnly(pattern.entry.pattern, pattern.matched)) {
      exact.push_back(std::move(pattern));
      continue;
    }
    for (const Request &request : requests)
      if (pattern.matched.contains(request.fqn)) {
        Pattern &single = exact.emplace_back();
        single.entry = request.entry;
        single.entry.pattern = request.fqn;
        single.matched.insert(request.fqn);
      }
  }
  // Then single characters.
  std::vector<Pattern> joined;
  for (Pattern &pattern : exact) {
    bool isJoined = false;
    for (Pattern &other : joined) {
      if (!isSame(other.entry, pattern.entry))
        continue;
      auto both = joinPatterns(other.entry.pattern, pattern.entry.pattern);
      llvm::StringSet<> matched = other.matched;
      for (const auto &name : pattern.matched)
        matched.insert(name.getKey());
      if (!both || !matchesOnly(*both, matched))
        continue;
      other.entry.pattern = *both;
      other.matched = std::move(matched);
      isJoined = true;
      break;
    }
    if (!isJoined)
      joined.push_back(std::move(pattern));
  }
  std::vector<PlanEntry> entries;
  for (Pattern &pattern : joined)
    entries.push_back(std::move(pattern.entry));
  return entries;
}

std::vector<PlanEntry> EntryMaker::run(StyledModules which) {
  requests.clear();
  llvm::StringSet<> styled;
  for (auto &[fqn, calls] : modules) {
    bool isNumbered =
        plan::getPattern(fqn.getValue(), plan::MatchMode::Fnmatch) != fqn;
    if (which == StyledModules::None ||
        (which == StyledModules::Numbered && !isNumbered))
      continue;
    if (addStyled(fqn, calls))
      styled.insert(fqn.getValue());
  }
  for (auto &[fqn, placement] : placements)
    if (isSplit(placement) && weights.contains(fqn) &&
        !styled.contains(fqn.getValue().rsplit('.').first)) {
      PlanEntry entry{"", loc, "", loc, {}};
      entry.direct.assign(placement.begin(), placement.end());
      requests.push_back({fqn.str(), std::move(entry)});
    }
  return generalize();
}

/// Whether `module` is a norm of the last dimension of (b, s, d), where the
/// ranks can split s.
static bool isNorm(ModuleOpInterface module) {
  OperandRange inputs = module.getInputs();
  if (inputs.empty() || module->getNumResults() != 1)
    return false;
  auto type = dyn_cast<RankedTensorType>(inputs.front().getType());
  if (!type || type != module->getResult(0).getType() || type.getRank() != 3 ||
      type.getDimSize(1) == 1)
    return false;
  bool hasParameters = false, isVector = true;
  module.walk([&](ParameterOpInterface parameter) {
    hasParameters = true;
    isVector &= parameter.getType().getShape() == type.getShape().drop_front(2);
  });
  return hasParameters && isVector;
}

/// Adds the layout of the split sequence to a ColwiseParallel's input or a
/// RowwiseParallel's output, if that has one.
void EntryMaker::declareSequence(PlanEntry &entry) const {
  bool isInput = entry.style == "ColwiseParallel";
  if (!isInput && entry.style != "RowwiseParallel")
    return;
  StringRef name = isInput ? "input_layouts" : "output_layouts";
  if (llvm::any_of(entry.arguments, [&](const plan::PlanArgument &argument) {
        return argument.name == name;
      }))
    return;
  auto hasSequence = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank() == 3;
  };
  for (auto &[fqn, calls] : modules) {
    if (!plan::matchFqn(entry.pattern, fqn))
      continue;
    for (ModuleOpInterface call : calls)
      if (isInput ? call.getInputs().empty() ||
                        !hasSequence(call.getInputs().front())
                  : !llvm::all_of(call->getResults(), hasSequence) ||
                        llvm::any_of(call->getResults(), isFunctionResult))
        return;
  }
  YamlValue value(loc);
  value.kind = YamlValue::Kind::Scalar;
  value.text = "Shard(1)";
  entry.arguments.push_back({name.str(), loc, std::move(value)});
}

std::vector<PlanEntry> EntryMaker::splitSequence(std::vector<PlanEntry> entries,
                                                 bool declares) {
  requests.clear();
  for (auto &[fqn, calls] : modules)
    if (llvm::all_of(calls, isNorm)) {
      const plan::Style *style =
          plan::lookupStyle(fqn.getContext(), "SequenceParallel");
      requests.push_back({fqn.str(), makeEntry(*style)});
    }
  if (requests.empty())
    return {};
  if (declares)
    for (PlanEntry &entry : entries)
      declareSequence(entry);
  llvm::append_range(entries, generalize());
  return entries;
}

std::vector<plan::PlanEntry>
planning::splitSequence(ModuleOp model, const MeshUse &use,
                        std::vector<plan::PlanEntry> entries, bool declares) {
  return EntryMaker(model, use, {}).splitSequence(std::move(entries), declares);
}

std::vector<plan::PlanEntry>
planning::makeEntries(ModuleOp model, const MeshUse &use,
                      const ParameterPlacements &placements,
                      StyledModules styled) {
  return EntryMaker(model, use, placements).run(styled);
}
