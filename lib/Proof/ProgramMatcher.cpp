//===- ProgramMatcher.cpp - Per-rank programs against a reference ---------===//

#include "ProgramMatcher.h"
#include "SplitSearch.h"
#include "mlir/IR/Builders.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::tp;

ProgramMatcher::ProgramMatcher(const ReferenceGraph &reference,
                               ArrayRef<Program> programs, MeshOp mesh)
    : reference(reference), programs(programs), mesh(mesh), algebra(mesh),
      scratchModule(ModuleOp::create(mesh.getLoc())),
      scratch(scratchModule->getBody()) {}

/// The first op of the function, in its order, that `values` depend on and that
/// `isWanted` says.
static Operation *findFirst(func::FuncOp function, ValueRange values,
                            function_ref<bool(Operation *)> isWanted) {
  DenseSet<Operation *> slice;
  SmallVector<Value> worklist(values);
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || !slice.insert(op).second)
      continue;
    llvm::append_range(worklist, op->getOperands());
    llvm::append_range(worklist, ValueNumbering::getCaptured(op));
  }
  for (Operation &op : function.getBody().front())
    if (slice.contains(&op) && isWanted(&op))
      return &op;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Replicas
//===----------------------------------------------------------------------===//

/// The types of the programs' blocks; none where ranks of one program differ.
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

/// The same without what says nothing: mesh dimensions of one rank, and how a
/// dimension without elements is split.
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
}

/// Follows what is known now through the ops of the reference.
void ProgramMatcher::drain() {
  while (!pending.empty()) {
    const Replica *replica = pending.pop_back_val();
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
  // A constant shape that only hooks read needn't be in a program.
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

/// All choices of replicas for the operands, `trigger` among them.
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
  // A rank's own block is a value of its own between these two.
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
  // What a body reads from around the op is whole.
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
    // What differs from rank to rank has no one value to be split.
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
ProgramMatcher::number(Operation *op, const DenseMap<Value, Number> &numbers) {
  SmallVector<Number> operands;
  for (Value operand : op->getOperands())
    operands.push_back(numbers.lookup(operand));
  for (Value captured : ValueNumbering::getCaptured(op))
    operands.push_back(numbers.lookup(captured));
  return numbering.get(op, operands);
}

/// Lets the op's hook build what each program has to run.
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
  // A result that a reduction makes is, before it, Partial.
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
      // A copied body reads what the op's body reads.
      if (!around.empty())
        inner.walk([&](Operation *each) {
          for (OpOperand &operand : each->getOpOperands())
            if (Value value = around.lookup(operand.get()))
              operand.set(value);
        });
      Number first = number(&inner, numbers);
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
    // Numbers of ops with regions refer to the ops.
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

/// Where program `index` gets `value`, a block of `result`, by a reduction of
/// what other ranks have: what it reduces.
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

/// An op without a rule is its own per-rank form where it has whole operands.
void ProgramMatcher::expandAlike(Operation *op,
                                 ArrayRef<const Replica *> operands) {
  if (!isMemoryEffectFree(op))
    return;
  for (const Replica *operand : operands)
    if (!operand->sharding || !operand->sharding.isReplicated())
      return;
  SmallVector<Numbers, 1> numbers(op->getNumResults());
  for (size_t index = 0; index < programs.size(); ++index) {
    auto own = llvm::map_to_vector(operands, [&](const Replica *operand) {
      return operand->numbers[index];
    });
    Number first = numbering.get(op, own);
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

void ProgramMatcher::move(Operation *op, Number operand) {
  auto it = byNumber.find(operand);
  if (it == byNumber.end())
    return;
  SmallVector<const Replica *, 2> from = it->second;
  for (const Replica *replica : from) {
    RankedTensorType global = reference.getType(replica->value);
    if (!global || reference.get(replica->value).isLocal)
      continue;
    std::string reason;
    FailureOr<ShardingAttr> to =
        algebra.apply(op, global, replica->sharding, reason);
    if (failed(to))
      continue;
    auto local = getLocalTypes(global, *to);
    if (!local || local->front() != op->getResult(0).getType())
      continue;
    Replica moved = {replica->value, *to, {}};
    for (auto [index, type] : llvm::enumerate(*local))
      moved.numbers.push_back(
          numbering.get(op, replica->numbers[index], Type(type)));
    addCounterparts(moved.numbers);
    add(std::move(moved));
  }
}

//===----------------------------------------------------------------------===//
// The programs
//===----------------------------------------------------------------------===//

void ProgramMatcher::collectAxes() {
  auto addAll = [&](ArrayRef<AxisRefAttr> list) {
    for (AxisRefAttr axis : list)
      if (!llvm::is_contained(axes, axis))
        axes.push_back(axis);
  };
  auto addSharding = [&](ShardingAttr sharding) {
    if (!sharding)
      return;
    for (AxisListAttr list : sharding.getDims()) {
      addAll(list.getAxes());
      if (!list.getSegments().empty() &&
          !llvm::is_contained(segments, list.getSegments()))
        segments.push_back(list.getSegments());
    }
  };
  func::FuncOp function = programs.front().function;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    addSharding(getArgSharding(function, i));
    types.insert(function.getArgument(i).getType());
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    addSharding(getResultSharding(function, i));
  function.walk([&](Operation *op) {
    for (NamedAttribute attr : op->getAttrDictionary())
      addSharding(dyn_cast<ShardingAttr>(attr.getValue()));
    if (auto list = op->getAttrOfType<AxisListAttr>("axes"))
      addAll(list.getAxes());
    for (Type type : op->getResultTypes())
      types.insert(type);
  });
}

/// What the placement says that the ranks' arguments are must be what they are.
std::optional<Mismatch> ProgramMatcher::addArguments() {
  auto function = const_cast<ReferenceGraph &>(reference).getFunction();
  Builder builder(mesh.getContext());
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    ReferenceGraph::Id id = reference.getId(function.getArgument(index));
    RankedTensorType global = reference.getType(id);
    Replica replica = {id, {}, {}};
    for (auto [number, program] : llvm::enumerate(programs)) {
      func::FuncOp own = program.function;
      auto fail = [&](const Twine &text) {
        return Mismatch{own, static_cast<unsigned>(number),
                        ("argument " + Twine(index) + " " + text).str(),
                        function, /*isInterface=*/true};
      };
      ShardingAttr sharding = getArgSharding(own, index);
      auto type = own.getArgAttrOfType<TypeAttr>(index, kGlobalTypeAttr);
      if (!global) {
        // Scalars are the same on all ranks.
        if (own.getArgument(index).getType() !=
            function.getArgument(index).getType())
          return fail("has another type than the reference's argument");
        replica.sharding = getWhole(0);
        replica.numbers.push_back(numbering.getSource(
            builder.getIndexAttr(index), own.getArgument(index).getType()));
        continue;
      }
      if (!sharding || !type)
        return fail("has no 'tp.sharding' and 'tp.global_type'");
      if (type.getValue() != global)
        return fail("is a block of a tensor of another type than the "
                    "reference's argument");
      if (replica.sharding && replica.sharding != sharding)
        return fail("is placed otherwise than in the first program");
      replica.sharding = sharding;
      if (algebra.getLocalType(global, sharding, program.ranks) !=
          own.getArgument(index).getType())
        return fail("has another type than the ranks' blocks of it");
      replica.numbers.push_back(numbering.getSource(
          builder.getIndexAttr(index), own.getArgument(index).getType()));
    }
    func::FuncOp first = programs.front().function;
    firstNumbers[first.getArgument(index)] = replica.numbers.front();
    computed.insert(replica.numbers.front());
    add(std::move(replica));
  }
  return std::nullopt;
}

/// A source that says what it is a block of.
std::optional<Mismatch> ProgramMatcher::addParameter(Operation *op) {
  auto fqn = op->getAttrOfType<StringAttr>("fqn");
  auto fail = [&](const Twine &text) {
    return Mismatch{
        op, 0,
        ("parameter '" + (fqn ? fqn.getValue() : "") + "' " + text).str(),
        nullptr, /*isInterface=*/true};
  };
  auto id = reference.getParameter(fqn ? fqn.getValue() : "");
  if (!id)
    return fail("is not in the reference");
  auto sharding = op->getAttrOfType<ShardingAttr>(kShardingAttr);
  auto global = dyn_cast<RankedTensorType>(
      op->getAttrOfType<TypeAttr>(kGlobalTypeAttr).getValue());
  if (!sharding || global != reference.getType(*id))
    return fail("is a block of a tensor of another type than the reference's");
  auto local = getLocalTypes(global, sharding);
  if (!local || local->front() != op->getResult(0).getType())
    return fail("has another type than the ranks' blocks of it");
  Replica replica = {*id, sharding, {}};
  for (RankedTensorType type : *local)
    replica.numbers.push_back(numbering.get(op, {}, Type(type)));
  add(std::move(replica));
  return std::nullopt;
}

std::optional<Mismatch> ProgramMatcher::matchFirst() {
  func::FuncOp function = programs.front().function;
  Block &block = function.getBody().front();
  for (Operation &op : block.without_terminator())
    if (auto mismatch = matchOp(&op))
      return mismatch;
  return matchReturn(block.getTerminator());
}

std::optional<Mismatch> ProgramMatcher::matchOp(Operation *op) {
  Number first = number(op, firstNumbers);
  for (OpResult result : op->getResults()) {
    firstNumbers[result] = first + result.getResultNumber();
    computed.insert(first + result.getResultNumber());
  }
  if (op->hasAttr(kGlobalTypeAttr)) {
    if (auto mismatch = addParameter(op))
      return mismatch;
  } else if (BlockAlgebra::isMovement(op)) {
    move(op, firstNumbers.lookup(op->getOperand(0)));
  } else if (hasFollowedRegions(op)) {
    if (auto mismatch = matchRegions(cast<RegionBranchOpInterface>(op)))
      return mismatch;
  }
  for (OpResult result : op->getResults()) {
    auto it = expected.find(firstNumbers[result]);
    if (it == expected.end())
      continue;
    SmallVector<Replica, 1> list = std::move(it->second);
    expected.erase(it);
    for (Replica &replica : list)
      add(std::move(replica));
  }
  drain();
  bool known =
      op->getNumResults() && byNumber.contains(firstNumbers[op->getResult(0)]);
  if (known && BlockAlgebra::isMovement(op))
    ++numMovements;
  else if (known)
    ++numByRule;
  else if (op->getNumResults() &&
           helpers.contains(firstNumbers[op->getResult(0)]))
    ++numHelpers;
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective)
    return std::nullopt;
  auto it = counterparts.find(firstNumbers[op->getResult(0)]);
  if (it == counterparts.end()) {
    auto culprit = findCulprit(op->getResult(0));
    return culprit ? *culprit : explain(op);
  }
  issued.push_back(it->second);
  firstCollectives.push_back(collective);
  return std::nullopt;
}

std::optional<Mismatch> ProgramMatcher::matchReturn(Operation *op) {
  func::FuncOp function = programs.front().function;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    ReferenceGraph::Id wanted = reference.getResults()[index];
    RankedTensorType global = reference.getType(wanted);
    ShardingAttr sharding = getResultSharding(function, index);
    std::string what = "result " + std::to_string(index);
    auto type = function.getResultAttrOfType<TypeAttr>(index, kGlobalTypeAttr);
    if (!sharding || !type)
      return Mismatch{function, 0,
                      what + " has no 'tp.sharding' and 'tp.global_type'",
                      nullptr, /*isInterface=*/true};
    if (type.getValue() != global)
      return Mismatch{
          function, 0,
          what + " is a block of a tensor of another type than the reference's",
          nullptr, /*isInterface=*/true};
    const Replica *other = nullptr;
    Alternatives found;
    for (const Replica *replica : byNumber.lookup(firstNumbers[operand])) {
      if (replica->value != wanted)
        continue;
      other = replica;
      if (algebra.isSame(global, replica->sharding, sharding))
        found.push_back(replica->numbers);
    }
    if (!found.empty()) {
      returned.push_back(std::move(found));
      continue;
    }
    Operation *value = reference.get(wanted).value.getDefiningOp();
    if (other)
      return Mismatch{op, 0,
                      what + " is returned as " +
                          printPlacements(other->sharding, mesh) +
                          " and declared " + printPlacements(sharding, mesh),
                      value};
    if (auto culprit = findCulprit(operand))
      return culprit;
    return Mismatch{
        op, 0, what + " is the value of another of the reference's ops", value};
  }
  return std::nullopt;
}

/// Another program has to compute its own form of what the first one does.
std::optional<Mismatch> ProgramMatcher::matchOther(unsigned index) {
  DenseMap<Value, Number> numbers;
  func::FuncOp function = programs[index].function;
  Builder builder(mesh.getContext());
  for (BlockArgument argument : function.getArguments())
    numbers[argument] = numbering.getSource(
        builder.getIndexAttr(argument.getArgNumber()), argument.getType());
  // What the first program's values correspond to.
  DenseSet<Number> known;
  for (const auto &replica : replicas)
    known.insert(replica->numbers[index]);
  auto fail = [&](Operation *at, ValueRange values, const Twine &text) {
    Operation *unknown = findFirst(function, values, [&](Operation *op) {
      return llvm::none_of(op->getResults(), [&](Value result) {
        return known.contains(numbers.lookup(result)) ||
               helpers.contains(numbers.lookup(result));
      });
    });
    return Mismatch{unknown ? unknown : at, index, text.str(), nullptr};
  };
  auto isOneOf = [&](const Alternatives &alternatives, Number number) {
    return llvm::any_of(alternatives, [&](const Numbers &numbers) {
      return numbers[index] == number;
    });
  };
  size_t next = 0;
  for (Operation &op : function.getBody().front()) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      if (next != issued.size())
        return fail(&op, {},
                    "the program issues " + Twine(next) +
                        " collectives where others issue " +
                        Twine(issued.size()));
      for (auto [i, operand] : llvm::enumerate(op.getOperands()))
        if (!isOneOf(returned[i], numbers.lookup(operand)))
          return fail(&op, operand,
                      "result " + Twine(i) +
                          " isn't computed from the ranks' blocks as it is "
                          "by the other ranks");
      return std::nullopt;
    }
    Number first = number(&op, numbers);
    for (OpResult result : op.getResults())
      numbers[result] = first + result.getResultNumber();
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective)
      continue;
    // Ranks meet in one group only if all name it alike.
    if (next == issued.size() || !isOneOf(issued[next], first) ||
        collective.getAxes() != firstCollectives[next].getAxes())
      return fail(&op, op.getResults(),
                  "the collective isn't the one that the other ranks issue "
                  "here, of the same value");
    ++next;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Explaining
//===----------------------------------------------------------------------===//

/// The first op on the way to `wrong` that nothing explains.
std::optional<Mismatch> ProgramMatcher::findCulprit(Value wrong) {
  Operation *op =
      findFirst(programs.front().function, wrong, [&](Operation *op) {
        return llvm::none_of(op->getResults(), [&](Value result) {
          return byNumber.contains(firstNumbers[result]) ||
                 helpers.contains(firstNumbers[result]);
        });
      });
  return op ? std::optional<Mismatch>(explain(op)) : std::nullopt;
}

Mismatch ProgramMatcher::explain(Operation *op) {
  Mismatch mismatch{op, 0, "", nullptr};
  if (BlockAlgebra::isMovement(op)) {
    for (const Replica *replica :
         byNumber.lookup(firstNumbers[op->getOperand(0)])) {
      mismatch.reference = reference.get(replica->value).value.getDefiningOp();
      RankedTensorType global = reference.getType(replica->value);
      if (succeeded(
              algebra.apply(op, global, replica->sharding, mismatch.reason)))
        mismatch.reason = "its result has another type than the ranks' blocks";
      return mismatch;
    }
    mismatch.reason = "its operand is no block of a value of the reference";
    return mismatch;
  }
  // The op of the reference that it might stand for: one of the same kind that
  // uses the same values, the first place of origin that agrees.
  Operation *similar = nullptr;
  for (Value operand : op->getOperands())
    for (const Replica *replica : byNumber.lookup(firstNumbers[operand]))
      for (Operation *user : reference.get(replica->value).users)
        if (user->getName() == op->getName() &&
            (!similar || user->getLoc() == op->getLoc()))
          similar = user;
  mismatch.reference = similar;
  mismatch.reason = "it isn't what an op of the reference is to each rank";
  if (!similar)
    return mismatch;
  if (similar->getNumOperands() != op->getNumOperands())
    return mismatch;
  // Operands that are what the reference's are, placed otherwise than it takes.
  SmallVector<ShardingAttr> shardings;
  for (auto [own, theirs] :
       llvm::zip_equal(op->getOperands(), similar->getOperands()))
    for (const Replica *replica : byNumber.lookup(firstNumbers[own]))
      if (replica->value == reference.getId(theirs)) {
        shardings.push_back(replica->sharding);
        break;
      }
  auto ruleOp = dyn_cast<ShardingRuleOpInterface>(similar);
  if (!ruleOp || shardings.size() != op->getNumOperands()) {
    mismatch.reason = "its operands aren't those of the reference's op";
    return mismatch;
  }
  std::string why;
  if (findSplits(ruleOp, mesh, algebra, shardings, {}, why).empty())
    mismatch.reason = why;
  else {
    mismatch.reason = "with operands that are ";
    for (auto [index, sharding] : llvm::enumerate(shardings))
      mismatch.reason += (index ? ", " : "") + printPlacements(sharding, mesh);
    mismatch.reason += ", the reference's op is to be computed otherwise";
  }
  return mismatch;
}

std::optional<Mismatch> ProgramMatcher::run() {
  collectAxes();
  if (auto mismatch = addArguments())
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
