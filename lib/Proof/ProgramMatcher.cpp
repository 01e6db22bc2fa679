//===- ProgramMatcher.cpp - Per-rank programs against a reference ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramMatcher.h"
#include "SplitSearch.h"
#include "mlir/IR/Builders.h"
#include "tp/Sharding/Uniformity.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::tp;

ProgramMatcher::ProgramMatcher(ReferenceGraph &reference,
                               ArrayRef<Program> programs, MeshOp mesh)
    : reference(reference), programs(programs), mesh(mesh), algebra(mesh),
      sumOrders(reference), scratchModule(ModuleOp::create(mesh.getLoc())),
      scratch(scratchModule->getBody()) {}

//===----------------------------------------------------------------------===//
// Replicas
//===----------------------------------------------------------------------===//

/// The types of the programs' blocks; nullopt if the blocks of one program's
/// ranks have different types.
std::optional<SmallVector<RankedTensorType, 1>>
ProgramMatcher::getLocalTypes(RankedTensorType global, ShardingAttr sharding) {
  SmallVector<RankedTensorType, 1> local;
  for (const Program &program : programs) {
    local.push_back(algebra.getLocalType(global, sharding, program.ranks));
    if (!local.back())
      return std::nullopt;
  }
  return local;
}

/// `sharding` without parts that have no effect: mesh dimensions of one rank,
/// and splits of a dimension without elements.
static ShardingAttr normalize(MeshOp mesh, RankedTensorType global,
                              ShardingAttr sharding) {
  auto isSingle = [&](AxisRefAttr axis) { return mesh.getAxisSize(axis) == 1; };
  SmallVector<AxisListAttr> dims;
  for (auto [dim, list] : llvm::enumerate(sharding.getDims())) {
    SmallVector<AxisRefAttr> axes(list.getAxes());
    llvm::erase_if(axes, isSingle);
    if (global && global.getDimSize(dim) == 0)
      axes.clear();
    dims.push_back(AxisListAttr::get(mesh.getContext(), axes,
                                     axes.empty() ? ArrayRef<int64_t>()
                                                  : list.getSegments()));
  }
  SmallVector<PartialAttr> partials(sharding.getPartial());
  llvm::erase_if(partials, [&](PartialAttr partial) {
    return isSingle(partial.getAxis());
  });
  return ShardingAttr::get(mesh.getContext(), sharding.getMesh(), dims,
                           partials);
}

void ProgramMatcher::add(Replica replica) {
  replica.sharding =
      normalize(mesh, reference.getType(replica.value), replica.sharding);
  for (const Replica *other : byValue[replica.value])
    if (*other == replica)
      return;
  replicas.push_back(std::make_unique<Replica>(std::move(replica)));
  const Replica *added = replicas.back().get();
  byValue[added->value].push_back(added);
  byNumber[added->numbers.front()].push_back(added);
  pending.push_back(added);
  notePartial(*added);
}

/// Follows the replicas added so far through the ops of the reference, and
/// through the data movements of the first program.
void ProgramMatcher::drain() {
  while (!pending.empty()) {
    const Replica *replica = pending.pop_back_val();
    for (Operation *op : movements.lookup(replica->numbers.front()))
      move(op, *replica);
    for (Operation *user : reference.get(replica->value).users)
      expand(user, replica);
  }
}

void ProgramMatcher::addCounterparts(Numbers numbers) {
  Alternatives &alternatives = counterparts[numbers.front()];
  if (!llvm::is_contained(alternatives, numbers))
    alternatives.push_back(std::move(numbers));
}

void ProgramMatcher::expect(Replica replica) {
  Number first = replica.numbers.front();
  // A program needn't contain a constant shape, which only hooks read.
  Operation *op = reference.get(replica.value).value.getDefiningOp();
  bool isShape = op && op->getNumOperands() == 0 && op->getNumRegions() == 0 &&
                 !reference.getType(replica.value);
  if (computed.contains(first) || isShape)
    return add(std::move(replica));
  auto &list = expected[first];
  if (!llvm::is_contained(list, replica))
    list.push_back(std::move(replica));
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

/// Tries all choices of replicas for the operands that include `trigger`.
void ProgramMatcher::expand(Operation *op, const Replica *trigger) {
  SmallVector<Value> used(op->getOperands());
  llvm::append_range(used, ValueNumbering::getCaptured(op));
  SmallVector<const Replica *> chosen(used.size());
  auto choose = [&](auto &&choose, size_t index, bool triggered) -> void {
    if (index == used.size()) {
      if (triggered || !trigger)
        expandWith(op, chosen);
      return;
    }
    ReferenceGraph::Id id = reference.getId(used[index]);
    auto it = byValue.find(id);
    if (it == byValue.end())
      return;
    // Lists grow while an op's own results are added.
    SmallVector<const Replica *, 2> choices = it->second;
    for (const Replica *replica : choices) {
      chosen[index] = replica;
      choose(choose, index + 1, triggered || replica == trigger);
    }
  };
  choose(choose, 0, false);
}

void ProgramMatcher::expandWith(Operation *op,
                                ArrayRef<const Replica *> operands) {
  // Between these two ops, the ranks' blocks count as a value.
  if (auto toLocal = dyn_cast<ToLocalOp>(op)) {
    auto from = cast<RankedTensorType>(toLocal.getInput().getType());
    if (algebra.isSame(from, operands[0]->sharding, toLocal.getSharding()))
      add({reference.getId(toLocal),
           ShardingAttr::getReplicated(toLocal.getSharding().getMesh(),
                                       toLocal.getType().getRank()),
           operands[0]->numbers});
    return;
  }
  if (auto fromLocal = dyn_cast<FromLocalOp>(op)) {
    if (operands[0]->sharding.isReplicated())
      add({reference.getId(fromLocal), fromLocal.getSharding(),
           operands[0]->numbers});
    return;
  }
  auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruleOp)
    return expandAlike(op, operands);
  // Values that a body captures must be replicated.
  for (const Replica *captured : operands.drop_front(op->getNumOperands()))
    if (!captured->sharding.isReplicated())
      return;
  auto shardings = llvm::map_to_vector(
      operands.take_front(op->getNumOperands()),
      [](const Replica *replica) { return replica->sharding; });
  std::string reason;
  FreeSplits free = {axes, segments, /*inEqualSegments=*/reference.hasParts()};
  for (const OpSplit &split :
       findSplits(ruleOp, mesh, algebra, shardings, free, reason)) {
    // A value that differs between ranks isn't global and can't be split.
    if (!split.isReplicated() &&
        llvm::any_of(operands, [&](const Replica *replica) {
          return reference.get(replica->value).isLocal;
        }))
      continue;
    expandSplit(ruleOp, split, operands);
  }
}

Value ProgramMatcher::getPlaceholder(Number number, Type type) {
  Value &value = placeholders[number];
  if (!value)
    value = scratch->addArgument(type, mesh.getLoc());
  return value;
}

ProgramMatcher::Number
ProgramMatcher::number(Operation *op, const DenseMap<Value, Number> &numbers,
                       unsigned draw) {
  SmallVector<Number> operands;
  for (Value operand : op->getOperands())
    operands.push_back(numbers.lookup(operand));
  for (Value captured : ValueNumbering::getCaptured(op))
    operands.push_back(numbers.lookup(captured));
  return numbering.get(op, operands, draw);
}

ProgramMatcher::Number
ProgramMatcher::numberNext(Operation *op,
                           const DenseMap<Value, Number> &numbers,
                           DenseMap<Number, unsigned> &numDraws) {
  Number first = number(op, numbers);
  if (isDraw(op))
    if (unsigned draw = numDraws[first]++)
      return number(op, numbers, draw);
  return first;
}

/// Lets the op's hook build the ops that each program has to run.
void ProgramMatcher::expandSplit(ShardingRuleOpInterface op,
                                 const OpSplit &split,
                                 ArrayRef<const Replica *> operands) {
  ShardingRule rule = op.getShardingRule();
  SmallVector<Replica> results;
  SmallVector<SmallVector<Type, 1>> localTypes;
  for (OpResult result : op->getResults()) {
    ShardingAttr sharding =
        getResultSharding(rule, split, result.getResultNumber());
    if (!sharding)
      return;
    SmallVector<Type, 1> local(programs.size(), result.getType());
    if (auto global = dyn_cast<RankedTensorType>(result.getType())) {
      auto blocks = getLocalTypes(global, sharding);
      if (!blocks || !types.contains(blocks->front()))
        return;
      local.assign(blocks->begin(), blocks->end());
    } else if (!sharding.isReplicated()) {
      return;
    }
    localTypes.push_back(std::move(local));
    results.push_back({reference.getId(result), sharding, {}});
  }
  // The input of a reduction that makes a result is the result as a Partial.
  SmallVector<std::optional<Replica>> unreduced(results.size());
  SmallVector<SmallVector<Number>> collectives;
  for (auto [index, program] : llvm::enumerate(programs)) {
    DenseMap<Value, Number> numbers;
    SmallVector<Value> values;
    for (const Replica *operand : operands) {
      Number number = operand->numbers[index];
      Type type = reference.get(operand->value).value.getType();
      if (RankedTensorType global = reference.getType(operand->value)) {
        auto local = getLocalTypes(global, operand->sharding);
        if (!local)
          return;
        type = (*local)[index];
      }
      values.push_back(getPlaceholder(number, type));
      numbers[values.back()] = number;
    }
    SmallVector<Type> types;
    for (auto &local : localTypes)
      types.push_back(local[index]);
    OpSplit own = split;
    own.rank = program.ranks.front();
    OpBuilder builder(mesh.getContext());
    builder.setInsertionPointToEnd(scratch);
    Operation *last = scratch->empty() ? nullptr : &scratch->back();
    size_t numOperands = op->getNumOperands();
    FailureOr<SmallVector<Value>> built = op.partition(
        builder, ArrayRef(values).take_front(numOperands), types, own);
    DenseMap<Value, Value> around;
    for (auto [captured, value] :
         llvm::zip_equal(ValueNumbering::getCaptured(op),
                         ArrayRef(values).drop_front(numOperands)))
      around[captured] = value;
    collectives.emplace_back();
    bool hasRegions = false;
    auto begin = last ? std::next(last->getIterator()) : scratch->begin();
    for (Operation &inner : llvm::make_range(begin, scratch->end())) {
      // A copied body must read the placeholders instead of the captured
      // values.
      if (!around.empty())
        inner.walk([&](Operation *each) {
          for (OpOperand &operand : each->getOpOperands())
            if (Value value = around.lookup(operand.get()))
              operand.set(value);
        });
      // In the programs, it is replaced by its operand.
      if (auto again = dyn_cast<nn::RecomputeOp>(inner)) {
        numbers[again] = numbers.lookup(again.getInput());
        continue;
      }
      Number first =
          number(&inner, numbers, isDraw(&inner) ? reference.getDraw(op) : 0);
      hasRegions |= inner.getNumRegions() != 0;
      for (OpResult result : inner.getResults()) {
        numbers[result] = first + result.getResultNumber();
        helpers.insert(numbers[result]);
      }
      if (isa<CollectiveOpInterface>(inner))
        collectives.back().push_back(first);
    }
    if (succeeded(built))
      for (auto [result, before, value] :
           llvm::zip_equal(results, unreduced, *built)) {
        result.numbers.push_back(numbers.lookup(value));
        addUnreduced(value, index, result, before, numbers);
      }
    // Numbers of ops with regions refer to the ops, which must stay.
    if (!hasRegions)
      while (!scratch->empty() && &scratch->back() != last)
        scratch->back().erase();
    if (failed(built))
      return;
  }
  for (const auto &list : collectives)
    if (list.size() != collectives.front().size())
      return;
  for (size_t i = 0; i < collectives.front().size(); ++i)
    addCounterparts(llvm::to_vector<1>(llvm::map_range(
        collectives, [&](const auto &list) { return list[i]; })));
  for (Replica &result : results)
    expect(std::move(result));
  for (std::optional<Replica> &before : unreduced)
    if (before && before->numbers.size() == programs.size())
      expect(std::move(*before));
}

/// If program `index` computes `value`, a block of `result`, by a reduction
/// over ranks, adds the reduction's input to `before`.
void ProgramMatcher::addUnreduced(Value value, unsigned index,
                                  const Replica &result,
                                  std::optional<Replica> &before,
                                  const DenseMap<Value, Number> &numbers) {
  auto reduce = value.getDefiningOp<AllReduceOp>();
  if (!reduce || result.sharding.isPartial())
    return;
  SmallVector<PartialAttr> partials;
  for (AxisRefAttr axis : reduce.getAxes().getAxes()) {
    if (llvm::any_of(getSplittingAxes(result.sharding),
                     [&](AxisRefAttr other) { return axis.overlaps(other); }))
      return;
    partials.push_back(
        PartialAttr::get(mesh.getContext(), axis, reduce.getKind()));
  }
  auto sharding =
      ShardingAttr::get(mesh.getContext(), result.sharding.getMesh(),
                        result.sharding.getDims(), partials);
  if (index == 0)
    before = Replica{result.value, sharding, {}};
  if (before && before->sharding == sharding && before->numbers.size() == index)
    before->numbers.push_back(numbers.lookup(reduce.getInput()));
}

/// An op without a rule is its own per-rank form if its operands are
/// replicated.
void ProgramMatcher::expandAlike(Operation *op,
                                 ArrayRef<const Replica *> operands) {
  if (!onlyMakesResults(op))
    return;
  for (const Replica *operand : operands)
    if (!operand->sharding || !operand->sharding.isReplicated())
      return;
  SmallVector<Numbers, 1> numbers(op->getNumResults());
  for (size_t index = 0; index < programs.size(); ++index) {
    auto own = llvm::map_to_vector(operands, [&](const Replica *operand) {
      return operand->numbers[index];
    });
    Number first = numbering.get(op, own, reference.getDraw(op));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i].push_back(first + i);
  }
  for (OpResult result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    ShardingAttr sharding = getWhole(type ? type.getRank() : 0);
    expect(
        {reference.getId(result), sharding, numbers[result.getResultNumber()]});
  }
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

void ProgramMatcher::move(Operation *op, const Replica &from) {
  RankedTensorType global = reference.getType(from.value);
  if (!global || reference.get(from.value).isLocal)
    return;
  std::string reason;
  FailureOr<ShardingAttr> to = algebra.apply(op, global, from.sharding, reason);
  if (failed(to))
    return;
  auto local = getLocalTypes(global, *to);
  if (!local || local->front() != op->getResult(0).getType())
    return;
  Replica moved = {from.value, *to, {}};
  for (auto [index, type] : llvm::enumerate(*local))
    moved.numbers.push_back(numbering.get(op, from.numbers[index], Type(type)));
  addCounterparts(moved.numbers);
  add(std::move(moved));
}

//===----------------------------------------------------------------------===//
// Regrouped sums
//===----------------------------------------------------------------------===//

/// A Partial value may be a leaf of a sum that is reduced once.
void ProgramMatcher::notePartial(const Replica &replica) {
  ArrayRef<PartialAttr> partials = replica.sharding.getPartial();
  if (llvm::any_of(sums, [&](const auto &entry) {
        return entry.second.isZero(replica.value);
      }))
    return addPartialZeros(replica);
  bool isSum = llvm::all_of(partials, [](PartialAttr partial) {
    return partial.getKind() == ReductionKind::Sum;
  });
  if (!partials.empty() && isSum)
    sums.try_emplace(partials, reference)
        .first->second.addPartial(replica.value);
}

/// A value that is zero on every rank is also Partial.
void ProgramMatcher::addPartialZeros(const Replica &zero) {
  if (zero.sharding.isPartial())
    return;
  SmallVector<AxisRefAttr> splitting = getSplittingAxes(zero.sharding);
  for (auto &[partials, sum] : sums) {
    bool isUsed = llvm::any_of(partials, [&](PartialAttr partial) {
      return llvm::any_of(splitting, [&](AxisRefAttr axis) {
        return axis.overlaps(partial.getAxis());
      });
    });
    if (!isUsed && sum.isZero(zero.value))
      add({zero.value,
           ShardingAttr::get(mesh.getContext(), zero.sharding.getMesh(),
                             zero.sharding.getDims(), partials),
           zero.numbers});
  }
}

/// Tries other forms of the sums of values that are known to be Partial.
/// Returns whether this added any replicas.
bool ProgramMatcher::regroup() {
  size_t before = replicas.size();
  for (size_t i = 0; i < sums.size(); ++i) {
    Regrouping &sum = std::next(sums.begin(), i)->second;
    SmallVector<Operation *> forms = sum.run();
    for (ReferenceGraph::Id zero : sum.takeZeros()) {
      SmallVector<const Replica *, 2> known = byValue.lookup(zero);
      for (const Replica *replica : known)
        addPartialZeros(*replica);
    }
    for (Operation *form : forms)
      expand(form, nullptr);
    drain();
  }
  if (replicas.size() == before)
    reorderSums();
  return replicas.size() != before;
}

/// Tries the reference's sums in the order in which the first program adds.
void ProgramMatcher::reorderSums() {
  auto getValues = [&](Value value) {
    llvm::SmallSetVector<ReferenceGraph::Id, 2> values;
    for (const Replica *replica : byNumber.lookup(firstNumbers[value]))
      values.insert(replica->value);
    return values;
  };
  llvm::erase_if(unknownSums, [&](Operation *op) {
    Number own = firstNumbers[op->getResult(0)];
    if (byNumber.contains(own))
      return true;
    for (ReferenceGraph::Id a : getValues(op->getOperand(0)))
      for (ReferenceGraph::Id b : getValues(op->getOperand(1)))
        if (Operation *form = sumOrders.addForm(op, a, b))
          expand(form, nullptr);
    drain();
    return byNumber.contains(own);
  });
}

/// Counts the matched ops of the first program.
void ProgramMatcher::count() {
  func::FuncOp function = programs.front().function;
  function.walk([&](Operation *op) {
    auto it = op->getNumResults() ? firstNumbers.find(op->getResult(0))
                                  : firstNumbers.end();
    if (it == firstNumbers.end())
      return;
    auto view = views.find(op->getResult(0));
    bool isViewed = view != views.end() && !view->second.empty();
    if (isViewed || byNumber.contains(it->second))
      ++(isViewed || BlockAlgebra::isMovement(op) ? numMovements : numByRule);
    else if (helpers.contains(it->second))
      ++numHelpers;
  });
}

std::optional<Mismatch> ProgramMatcher::run() {
  llvm::scope_exit countLast([&]() { count(); });
  collectAxes();
  if (auto mismatch = addArguments())
    return mismatch;
  for (unsigned i = 0; i < reference.getResults().size(); ++i)
    if (auto mismatch = checkResultAttributes(i))
      return mismatch;
  for (Operation *source : reference.getSources())
    expand(source, nullptr);
  drain();
  if (auto mismatch = matchFirst())
    return mismatch;
  for (unsigned index = 1; index < programs.size(); ++index)
    if (auto mismatch = matchOther(index))
      return mismatch;
  return std::nullopt;
}
