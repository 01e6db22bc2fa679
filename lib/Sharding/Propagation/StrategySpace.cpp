//===- StrategySpace.cpp - Rules, placements and domains ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StrategySpace.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Sharding/SplitInference.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include <set>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// An op that would have more strategies has only those in the mesh's order and,
/// if these are more too, those over whole mesh dimensions, unless all are asked
/// for.
constexpr size_t kMaxInAnyOrder = 1024;

bool propagation::operator<(const State &a, const State &b) {
  auto key = [](const State &s) {
    return std::tuple(s.axis.getAsOpaquePointer(), s.partial.has_value(),
                      s.partial.value_or(ReductionKind::Sum), s.dim);
  };
  if (key(a) != key(b))
    return key(a) < key(b);
  return std::lexicographical_compare(a.segments.begin(), a.segments.end(),
                                      b.segments.begin(), b.segments.end());
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

unsigned StrategySpace::addRule(ShardingRule rule, int64_t width,
                                bool isIdentity) {
  std::vector<int64_t> content = {width, isIdentity};
  for (const Factor &factor : rule.factors) {
    content.insert(content.end(),
                   {factor.size, static_cast<int64_t>(factor.kind),
                    static_cast<int64_t>(factor.reduction), factor.reductions});
    for (ArrayRef<unsigned> tensors :
         {ArrayRef(factor.summedResults), ArrayRef(factor.circulatedOperands),
          ArrayRef(factor.circulatedResults)}) {
      content.push_back(-7);
      content.insert(content.end(), tensors.begin(), tensors.end());
    }
  }
  for (auto [factor, other] : rule.alternatives)
    content.insert(content.end(), {-8, factor, other});
  auto addTensors = [&](ArrayRef<TensorFactors> tensors) {
    content.push_back(-1);
    for (const TensorFactors &tensor : tensors) {
      content.push_back(-2);
      for (const DimFactors &dim : tensor) {
        content.push_back(-3);
        content.insert(content.end(), dim.begin(), dim.end());
      }
    }
  };
  addTensors(rule.operands);
  addTensors(rule.results);
  content.push_back(rule.numOnce);
  for (const LinearSet &set : rule.linearSets) {
    content.push_back(-4);
    content.insert(content.end(), set.begin(), set.end());
  }
  for (const Window &window : rule.windows)
    content.insert(content.end(), {-5, window.isResult, window.tensor,
                                   window.dim, window.start, window.size});
  for (const Halo &halo : rule.halos)
    content.insert(content.end(),
                   {-6, halo.factor, halo.operandDim, halo.resultDim,
                    halo.operandSize, halo.resultSize, halo.stride,
                    halo.padding, halo.extent, halo.isTransposed});
  auto [it, inserted] = rulesByContent.try_emplace(content, rules.size());
  if (inserted)
    rules.push_back(
        {std::make_unique<ShardingRule>(std::move(rule)), width, isIdentity});
  return it->second;
}

static int64_t getWidth(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isIntOrIndexOrFloat()
             ? getElementBytes(tensor.getElementType())
             : 8;
}

unsigned StrategySpace::addRule(ShardingRuleOpInterface op) {
  return addRule(op.getShardingRule(),
                 getWidth(op->getNumOperands() ? op->getOperand(0).getType()
                                               : op->getResult(0).getType()));
}

unsigned StrategySpace::getClass(Operation *op) {
  bool isNew;
  unsigned opClass = classes.get(op, isNew);
  if (isNew) {
    plainRules.emplace_back();
    rulesByClass.emplace_back();
    auto isStatic = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.hasStaticShape();
    };
    auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op);
    if (ruleOp && op->getNumRegions() == 0 &&
        !isa<DestinationStyleOpInterface>(op) &&
        llvm::all_of(op->getOperandTypes(), isStatic) &&
        llvm::all_of(op->getResultTypes(), isStatic))
      plainRules.back() = rulesByClass.back() = addRule(ruleOp);
  }
  return opClass;
}

std::optional<unsigned> StrategySpace::getPlainRule(Operation *op) {
  return op->getNumRegions() ? std::nullopt : plainRules[getClass(op)];
}

unsigned StrategySpace::getRule(ShardingRuleOpInterface op) {
  // The rule may depend on the value that an op writes into: a sum into zeros
  // has a different rule than a sum into something else.
  if (isa<DestinationStyleOpInterface>(op.getOperation()))
    return addRule(op);
  std::optional<unsigned> &rule = rulesByClass[getClass(op)];
  if (!rule)
    rule = addRule(op);
  return *rule;
}

unsigned StrategySpace::getIdentityRule(RankedTensorType type, bool isLinear) {
  ShardingRule rule;
  TensorFactors dims;
  for (int64_t size : type.getShape()) {
    dims.push_back({static_cast<unsigned>(rule.factors.size())});
    rule.factors.push_back({size});
  }
  rule.operands = {dims};
  rule.results = {dims};
  if (isLinear)
    rule.linear({LinearSet{0}});
  return addRule(std::move(rule), getWidth(type), /*isIdentity=*/true);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

unsigned StrategySpace::getState(const State &state) {
  auto [it, inserted] = statesById.try_emplace(state, states.size());
  if (!inserted)
    return it->second;
  states.push_back(state);
  return it->second;
}

StateSetId StrategySpace::addSet(const StateSet &set) {
  WordList words(kMaxStates / 64);
  for (size_t i = 0; i < kMaxStates; ++i)
    words[i / 64] |= Word(set.test(i)) << (i % 64);
  auto [number, isNew] = setNumbers.insert(words);
  if (isNew)
    sets.push_back(set);
  return number;
}

StateSetId StrategySpace::unite(StateSetId a, StateSetId b) {
  if (a == b || b == 0)
    return a;
  auto [it, inserted] = unions.try_emplace({a, b}, 0);
  if (inserted)
    it->second = addSet(sets[a] | sets[b]);
  return it->second;
}

StateSetId StrategySpace::getStates(ShardingAttr sharding) {
  auto mention = [&](AxisRefAttr axis) {
    if (!axis.isWhole() && mesh.getAxisSize(axis) > 1 &&
        !llvm::is_contained(mentionedParts, axis))
      mentionedParts.push_back(axis);
  };
  for (AxisListAttr list : sharding.getDims())
    llvm::for_each(list, mention);
  for (PartialAttr partial : sharding.getPartial())
    mention(partial.getAxis());
  return addStates(sharding);
}

StateSetId StrategySpace::addStates(ShardingAttr sharding) {
  if (auto it = statesOf.find(sharding); it != statesOf.end())
    return it->second;
  StateSet set;
  auto add = [&](State state) {
    if (mesh.getAxisSize(state.axis) == 1)
      return;
    unsigned id = getState(state);
    if (id < kMaxStates)
      set.set(id);
  };
  for (auto [dim, list] : llvm::enumerate(sharding.getDims())) {
    std::optional<std::pair<unsigned, int64_t>> before;
    for (AxisRefAttr axis : list) {
      add({axis, std::nullopt, static_cast<unsigned>(dim),
           SmallVector<int64_t, 0>(list.getSegments())});
      std::pair<unsigned, int64_t> place = {*mesh.getAxisIndex(axis.getName()),
                                            getPartBegin(axis)};
      anyOrder |= before && place < *before;
      before = place;
    }
  }
  for (PartialAttr partial : sharding.getPartial())
    add({partial.getAxis(), partial.getKind(), 0, {}});
  return statesOf[sharding] = addSet(set);
}

StateSetId StrategySpace::without(StateSetId set, AxisListAttr over) {
  StateSet result;
  for (auto [id, state] : llvm::enumerate(states))
    if (id < kMaxStates && sets[set].test(id) &&
        llvm::none_of(
            over,
            [&](AxisRefAttr axis) {
              return axis.getName() == state.axis.getName();
            }))
      result.set(id);
  return addSet(result);
}

bool StrategySpace::isAbout(StateSetId set, AxisRefAttr axis) const {
  for (auto [id, state] : llvm::enumerate(states))
    if (id < kMaxStates && sets[set].test(id) &&
        state.axis.getName() == axis.getName())
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// The most segments that spread. Without a limit, a value that is concatenated
/// with itself would get more and more.
constexpr size_t kMaxSegments = 64;

static void addChoice(std::vector<SplitChoice> &choices, SplitChoice choice) {
  if (!llvm::is_contained(choices, choice))
    choices.push_back(std::move(choice));
}

/// Whether segments can matter to the rule.
static bool hasSegments(const ShardingRule &rule) {
  return !rule.windows.empty();
}

SmallVector<AxisRefAttr> StrategySpace::getParts(const ShardingRule &rule,
                                                 ArrayRef<unsigned> dim,
                                                 const State &state,
                                                 StateSetId own) {
  SmallVector<AxisRefAttr> parts;
  if (dim.size() < 2)
    return parts;
  // Any combination of the other states may be major to it.
  llvm::SmallSetVector<int64_t, 8> before;
  before.insert(1);
  for (auto [id, other] : llvm::enumerate(states))
    if (id < kMaxStates && sets[own].test(id) && !other.partial &&
        other.dim == state.dim && !other.axis.overlaps(state.axis)) {
      int64_t size = mesh.getAxisSize(other.axis);
      for (int64_t blocks : SmallVector<int64_t>(before.getArrayRef()))
        before.insert(blocks * size);
    }
  for (int64_t blocks : before) {
    SmallVector<AxisRefAttr> here;
    collectParts(rule, dim, mesh, state.axis, blocks, here);
    for (AxisRefAttr part : here)
      if (!llvm::is_contained(parts, part))
        parts.push_back(part);
  }
  return parts;
}

/// Collects the choices by which an op follows `state` of one of its tensors.
void StrategySpace::collectChoices(const ShardingRule &rule, bool isResult,
                                   unsigned tensor, const State &state,
                                   StateSetId own,
                                   ArrayRef<StateSetId> operands,
                                   std::vector<SplitChoice> &choices) {
  if (state.partial) {
    for (auto [index, set] : llvm::enumerate(rule.linearSets))
      if (*state.partial == ReductionKind::Sum &&
          (isResult || llvm::is_contained(set, tensor)))
        addChoice(choices,
                  {state.axis, true, static_cast<unsigned>(index), {}});
    if (isResult)
      for (auto [index, factor] : llvm::enumerate(rule.factors))
        if (factor.kind == FactorKind::Reduction &&
            factor.reduction == *state.partial)
          addChoice(choices,
                    {state.axis, false, static_cast<unsigned>(index), {}});
    return;
  }
  const TensorFactors &tensorFactors =
      (isResult ? rule.results : rule.operands)[tensor];
  if (state.dim >= tensorFactors.size())
    return;
  const DimFactors &dim = tensorFactors[state.dim];
  auto meshRef = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  // A placement of a tensor with only this state.
  auto getAlone = [&](const State &of, size_t rank) {
    SmallVector<AxisListAttr> dims(rank,
                                   AxisListAttr::get(mesh.getContext(), {}));
    dims[of.dim] = AxisListAttr::get(mesh.getContext(), of.axis, of.segments);
    return ShardingAttr::get(mesh.getContext(), meshRef, dims, {});
  };
  for (unsigned factor : dim) {
    if (rule.factors[factor].kind == FactorKind::Whole)
      continue;
    SmallVector<SmallVector<int64_t>> variants;
    auto addVariant = [&](ArrayRef<ShardingAttr> from,
                          ArrayRef<ShardingAttr> to) {
      auto segments = inferSegments(rule, factor, state.axis, from, to);
      if (segments.size() <= kMaxSegments &&
          !llvm::is_contained(variants, segments))
        variants.push_back(std::move(segments));
    };
    SmallVector<ShardingAttr> none;
    SmallVector<ShardingAttr> alone(isResult ? rule.results.size()
                                             : rule.operands.size());
    alone[tensor] = getAlone(state, tensorFactors.size());
    if (isResult)
      addVariant(none, alone);
    else
      addVariant(alone, none);
    if (hasSegments(rule) && !isResult) {
      SmallVector<ShardingAttr> together(rule.operands.size());
      for (size_t i = 0; i < rule.operands.size(); ++i)
        for (auto [id, other] : llvm::enumerate(states))
          if (id < kMaxStates && sets[operands[i]].test(id) && !other.partial &&
              other.axis == state.axis && other.dim < rule.operands[i].size() &&
              llvm::is_contained(rule.operands[i][other.dim], factor))
            together[i] = getAlone(other, rule.operands[i].size());
      addVariant(together, none);
    }
    for (auto &segments : variants)
      addChoice(choices, {state.axis, false, factor,
                          llvm::to_vector_of<int64_t, 0>(segments)});
    // If the mesh dimension doesn't divide the major factor of a product, parts
    // of it split the factors separately.
    for (AxisRefAttr part : getParts(rule, dim, state, own))
      addChoice(choices, {part, false, factor, {}});
    if (!state.axis.isWhole())
      addChoice(choices,
                {AxisRefAttr::get(mesh.getContext(), state.axis.getName()),
                 false,
                 factor,
                 {}});
  }
}

const Spread &StrategySpace::spread(unsigned ruleId,
                                    ArrayRef<StateSetId> operands,
                                    ArrayRef<StateSetId> results) {
  WordList list = {ruleId};
  llvm::append_range(list, operands);
  llvm::append_range(list, results);
  return spread(list, operands.size());
}

bool StrategySpace::isSettled(unsigned ruleId, const Spread &from) {
  if (!from.isSettled) {
    const Spread &next = spread(ruleId, from.operands, from.results);
    from.isSettled =
        next.operands == from.operands && next.results == from.results;
  }
  return *from.isSettled;
}

const Spread &StrategySpace::spread(ArrayRef<Word> list, size_t numOperands) {
  auto [number, isNew] = spreadNumbers.insert(list);
  if (!isNew)
    return spreads[number];

  unsigned ruleId = list.front();
  SmallVector<StateSetId, 4> operands(list.slice(1, numOperands)),
      results(list.drop_front(1 + numOperands));
  const ShardingRule &rule = *rules[ruleId].rule;
  Spread &result = spreads.emplace_back();
  auto collect = [&](ArrayRef<StateSetId> of, bool isResult) {
    for (auto [tensor, set] : llvm::enumerate(of))
      for (unsigned id = 0, e = std::min(states.size(), kMaxStates); id < e;
           ++id)
        if (sets[set].test(id)) {
          State state = states[id];
          collectChoices(rule, isResult, tensor, state, set, operands,
                         result.choices);
        }
  };
  collect(operands, /*isResult=*/false);
  collect(results, /*isResult=*/true);
  // Linear sets come first, then factors, both by index.
  llvm::stable_sort(result.choices, [](const auto &a, const auto &b) {
    return std::pair(!a.isLinear, a.index) < std::pair(!b.isLinear, b.index);
  });
  result.operands.assign(operands.begin(), operands.end());
  result.results.assign(results.begin(), results.end());
  for (const SplitChoice &choice : result.choices)
    for (auto [set, added] :
         llvm::zip(llvm::concat<StateSetId>(result.operands, result.results),
                   getEffect(ruleId, choice)))
      set = unite(set, added);
  return result;
}

ArrayRef<StateSetId> StrategySpace::getEffect(unsigned ruleId,
                                              const SplitChoice &choice) {
  auto &effects = rules[ruleId].effects;
  for (const auto &[known, effect] : effects)
    if (known == choice)
      return effect;
  SmallVector<StateSetId, 4> effect;
  const ShardingRule &rule = *rules[ruleId].rule;
  OpSplit split = getReplicatedSplit(rule, mesh);
  bool isValid = true;
  if (choice.isLinear) {
    split.linearAxes.push_back({choice.index, choice.axis});
  } else {
    split.factorSegments[choice.index].assign(choice.segments.begin(),
                                              choice.segments.end());
    isValid = canSplit(rule, split, choice.index, choice.axis);
    split.factorAxes[choice.index].push_back(choice.axis);
  }
  auto add = [&](ShardingAttr sharding) {
    effect.push_back(sharding ? addStates(sharding) : 0);
  };
  if (isValid) {
    for (size_t i = 0; i < rule.operands.size(); ++i)
      add(getOperandSharding(rule, split, i));
    for (size_t i = 0; i < rule.results.size(); ++i)
      add(getResultSharding(rule, split, i));
  }
  effects.push_back({choice, std::move(effect)});
  return effects.back().second;
}

std::vector<SplitChoice>
StrategySpace::getChoices(unsigned ruleId, ArrayRef<AxisRefAttr> axes) const {
  const ShardingRule &rule = *rules[ruleId].rule;
  std::vector<SplitChoice> choices;
  for (AxisRefAttr axis : axes) {
    for (unsigned set = 0; set + rule.numOnce < rule.linearSets.size(); ++set)
      choices.push_back({axis, true, set, {}});
    for (unsigned factor = 0; factor < rule.factors.size(); ++factor)
      if (rule.factors[factor].kind != FactorKind::Whole)
        choices.push_back({axis, false, factor, {}});
  }
  return choices;
}

ArrayRef<SplitChoice> StrategySpace::getAllChoices(unsigned rule) {
  std::optional<std::vector<SplitChoice>> &all = rules[rule].allChoices;
  if (all)
    return *all;
  // The ranks along a pipeline run other ops.
  PipelineOp pipeline = getPipeline(mesh->getParentOfType<ModuleOp>());
  SmallVector<AxisRefAttr> axes;
  for (size_t i = 0, e = mesh.getNumAxes(); i < e; ++i)
    if (mesh.getAxisSizes()[i] > 1 &&
        (!pipeline || pipeline.getAxis() != mesh.getAxisName(i)))
      axes.push_back(AxisRefAttr::get(mesh.getContext(), mesh.getAxisName(i)));
  all = getChoices(rule, axes);
  return *all;
}

std::vector<SplitChoice> StrategySpace::getPartChoices(unsigned rule) const {
  MeshOp op = mesh; // an op's accessors aren't const
  SmallVector<AxisRefAttr> parts;
  for (size_t i = 0, e = op.getNumAxes(); i < e; ++i) {
    StringRef name = op.getAxisName(i);
    std::set<int64_t> bounds = {1, op.getAxisSizes()[i]};
    for (AxisRefAttr part : mentionedParts)
      if (part.getName() == name)
        bounds.insert({part.getPreSize(), part.getPreSize() * part.getSize()});
    if (bounds.size() == 2)
      continue;
    // The parts between all bounds, if the bounds nest; else the mentioned
    // parts.
    bool nest = true;
    SmallVector<AxisRefAttr> between;
    for (auto it = bounds.begin(), next = std::next(it); next != bounds.end();
         ++it, ++next) {
      nest &= *next % *it == 0;
      if (nest)
        between.push_back(
            AxisRefAttr::get(op.getContext(), name, *it, *next / *it));
    }
    if (nest)
      llvm::append_range(parts, between);
    else
      llvm::copy_if(mentionedParts, std::back_inserter(parts),
                    [&](AxisRefAttr part) { return part.getName() == name; });
  }
  return getChoices(rule, parts);
}

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

unsigned StrategySpace::addColumn(ArrayRef<ShardingAttr> placements) {
  WordList key;
  for (ShardingAttr sharding : placements)
    key.push_back(toWord(sharding.getAsOpaquePointer()));
  auto [number, isNew] = columnNumbers.insert(key);
  if (!isNew)
    return number;
  Column &column = columns.emplace_back();
  llvm::append_range(column.placements, placements);
  DenseMap<ShardingAttr, unsigned> indices;
  for (ShardingAttr placement : placements) {
    auto [it, isFirst] = indices.try_emplace(placement, column.distinct.size());
    if (isFirst)
      column.distinct.push_back(placement);
    column.indices.push_back(it->second);
  }
  return number;
}

static void addColumns(StrategySpace &space, Domain &domain) {
  const Strategy &first = domain.strategies.front();
  for (size_t i = 0; i < first.operands.size(); ++i)
    domain.operands.push_back(space.addColumn(llvm::map_to_vector(
        domain.strategies, [&](const Strategy &s) { return s.operands[i]; })));
  for (size_t i = 0; i < first.results.size(); ++i)
    domain.results.push_back(space.addColumn(llvm::map_to_vector(
        domain.strategies, [&](const Strategy &s) { return s.results[i]; })));
}

const Domain *StrategySpace::getDomain(
    unsigned rule, const std::vector<SplitChoice> &choices, const void *key,
    function_ref<bool(const Strategy &)> filter,
    function_ref<void(Strategy &)> change, bool reorders, size_t limit) {
  ChoiceKey choiceKey;
  for (const SplitChoice &choice : choices)
    choiceKey.push_back({choice.axis.getAsOpaquePointer(), choice.isLinear,
                         choice.index, choice.segments});
  auto &domain = domains[{rule, std::move(choiceKey), key, reorders, limit}];
  if (domain)
    return domain.get();
  domain = std::make_unique<Domain>();
  auto enumerate = [&](bool inAnyOrder, size_t most) {
    return enumerateStrategies(*rules[rule].rule, mesh, choices,
                               rules[rule].width, inAnyOrder, most);
  };
  domain->strategies = enumerate(
      anyOrder || reorders, reorders ? limit : std::min(limit, kMaxInAnyOrder));
  if (domain->strategies.empty() && anyOrder && !reorders)
    domain->strategies = enumerate(/*inAnyOrder=*/false, limit);
  // The parts of a mesh dimension of many ranks have very many combinations.
  if (domain->strategies.empty() && !reorders && limit > kMaxInAnyOrder) {
    std::vector<SplitChoice> whole;
    llvm::copy_if(
        choices, std::back_inserter(whole),
        [](const SplitChoice &choice) { return choice.axis.isWhole(); });
    domain->strategies =
        enumerateStrategies(*rules[rule].rule, mesh, whole, rules[rule].width,
                            /*anyOrder=*/false, limit);
  }
  if (rules[rule].isIdentity)
    for (Strategy &strategy : domain->strategies)
      strategy.cost = {};
  if (change)
    llvm::for_each(domain->strategies, change);
  if (filter)
    llvm::erase_if(domain->strategies,
                   [&](const Strategy &s) { return !filter(s); });
  if (!domain->strategies.empty())
    addColumns(*this, *domain);
  return domain.get();
}

const Domain *StrategySpace::getFixedDomain(ArrayRef<ShardingAttr> operands,
                                            ArrayRef<ShardingAttr> results) {
  WordList key = {operands.size()};
  for (ShardingAttr sharding :
       llvm::concat<const ShardingAttr>(operands, results))
    key.push_back(toWord(sharding.getAsOpaquePointer()));
  auto [number, isNew] = fixedNumbers.insert(key);
  if (!isNew)
    return &fixedDomains[number];
  Domain &domain = fixedDomains.emplace_back();
  Strategy strategy;
  strategy.operands.assign(operands.begin(), operands.end());
  strategy.results.assign(results.begin(), results.end());
  domain.strategies.push_back(std::move(strategy));
  addColumns(*this, domain);
  return &domain;
}

const Domain *StrategySpace::getPart(const Domain *domain,
                                     const llvm::BitVector &kept) {
  auto &part = parts[{domain, kept}];
  if (part)
    return part.get();
  part = std::make_unique<Domain>();
  for (unsigned strategy : kept.set_bits())
    part->strategies.push_back(domain->strategies[strategy]);
  addColumns(*this, *part);
  return part.get();
}
