//===- ExactCheck.cpp - Programs against a reference, by execution --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExactCheck.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::exact;

ExactCheck::ExactCheck(func::FuncOp reference, ArrayRef<Program> programs,
                       MeshOp mesh, int64_t budget, bool isProven)
    : reference(reference), programs(programs), mesh(mesh), budget(budget),
      session(mesh, budget), isProven(isProven) {
  byRank.resize(mesh.getNumRanks());
  for (const Program &program : programs)
    for (int64_t rank : program.ranks)
      byRank[rank] = program.function;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

static std::string getName(BlockArgument argument) {
  return "argument " + std::to_string(argument.getArgNumber());
}

Datum ExactCheck::makeInput(StringRef name, RankedTensorType type,
                            bool isParameter) {
  session.budget -= type.getNumElements();
  if (session.budget < 0)
    return {};
  return {std::make_shared<Tensor>(inputs.make(name, type, isParameter)), {}};
}

/// A rank's block; for a Partial, a contribution such that all of them combine
/// to the value.
Datum ExactCheck::getBlockOf(const Datum &whole, RankedTensorType type,
                             ShardingAttr sharding, int64_t rank) {
  if (!sharding || !whole.tensor ||
      sharding.getRank() != static_cast<int64_t>(whole.tensor->shape.size()))
    return {};
  Datum block = whole;
  for (auto [dim, intervals] :
       llvm::enumerate(getBlock(whole.tensor->shape, sharding, mesh, rank)))
    block = take(block, dim, intervals);
  if (ArrayRef(block.tensor->shape) != type.getShape())
    return {};
  bool isFloat = isa<FloatType>(type.getElementType());
  for (PartialAttr partial : sharding.getPartial()) {
    int64_t size = mesh.getAxisSize(partial.getAxis());
    int64_t index = mesh.getIndexAlong(rank, partial.getAxis());
    auto part = std::make_shared<Tensor>(*block.tensor);
    for (auto [i, value] : llvm::enumerate(part->data)) {
      auto share = [&](int64_t of) {
        return inputs.getShare(value, of, isFloat);
      };
      if (partial.getKind() == ReductionKind::Product && index)
        value = isFloat ? fromInteger(1) : Scalar{1};
      if (partial.getKind() != ReductionKind::Sum)
        continue;
      // The first rank has the rest.
      if (index) {
        value = share(index);
        continue;
      }
      Scalar rest = value;
      for (int64_t other = 1; other < size; ++other)
        rest = isFloat ? sub(rest, share(other))
                       : Scalar{rest.bits - share(other).bits};
      value = rest;
    }
    block = {part, {}};
  }
  return block;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

LogicalResult ExactCheck::runReference() {
  arguments.clear();
  parameters.clear();
  for (BlockArgument argument : reference.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type) {
      if (!argument.getType().isIntOrIndexOrFloat())
        return session.fail(reference,
                            "an argument is neither a tensor nor a number");
      Datum one = makeInput(getName(argument),
                            RankedTensorType::get({}, argument.getType()),
                            /*isParameter=*/false);
      arguments.push_back(
          {nullptr, one.tensor ? one.tensor->data[0] : Scalar()});
      continue;
    }
    arguments.push_back(
        makeInput(getName(argument), type, /*isParameter=*/false));
    if (!arguments.back().tensor)
      return session.spend(reference, 0);
  }
  auto getParameter = [&](Operation *op, int64_t) {
    Datum &value = parameters[cast<nn::ParameterOp>(op).getFqn()];
    if (!value.tensor)
      value = makeInput(cast<nn::ParameterOp>(op).getFqn(),
                        cast<RankedTensorType>(op->getResult(0).getType()),
                        /*isParameter=*/true);
    return value;
  };
  session.getParameter = getParameter;
  session.meaning.isReference = true;
  whole = std::make_unique<Machine>(session, reference, 0, arguments);
  return success(whole->run() == Machine::Status::Finished);
}

/// The integer inputs that `op` takes indices from.
SmallVector<std::string> ExactCheck::getInputs(Operation *op) {
  SmallVector<std::string> names;
  SmallVector<Value> worklist;
  DenseSet<Value> seen;
  auto push = [&](Operation *user, auto isIndex) {
    for (Value operand : user->getOperands())
      if (isIndex(operand) && seen.insert(operand).second)
        worklist.push_back(operand);
  };
  auto isNumber = [](Value value) { return value.getType().isIntOrIndex(); };
  auto isAny = [](Value value) {
    return getElementTypeOrSelf(value).isIntOrIndex();
  };
  // If an op takes its indices one by one, its tensors are data. If only a few
  // indices are possible, one may be right by chance, so try more points.
  if (llvm::any_of(op->getOperands(), isNumber)) {
    push(op, isNumber);
    minPoints = std::max<uint64_t>(minPoints, 8);
  } else {
    push(op, isAny);
  }
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
      names.push_back(parameter.getFqn().str());
    else if (Operation *producer = value.getDefiningOp())
      push(producer, isAny);
    else if (auto argument = cast<BlockArgument>(value);
             argument.getOwner()->getParentOp() == reference)
      names.push_back(getName(argument));
  }
  return names;
}

/// Narrows the integer inputs from which out-of-range indices were computed:
/// first to below the bound, then by excluding boundaries that aren't valid
/// indices, then away from zero, in case something is subtracted. Returns false
/// if nothing can be narrowed.
bool ExactCheck::narrow() {
  if (session.outOfRange.empty())
    return false;
  SmallVector<std::pair<std::string, int64_t>> indices;
  bool isNarrowed = false;
  for (auto [op, bound, index] : session.outOfRange)
    for (const std::string &name : getInputs(op)) {
      Inputs::Range &range = inputs.getRange(name);
      indices.push_back({name, index});
      if (range.bound <= bound)
        continue;
      range.bound = bound;
      isNarrowed = true;
    }
  if (isNarrowed)
    return true;
  for (auto &[name, index] : indices)
    isNarrowed |= inputs.exclude(name, index);
  if (isNarrowed)
    return true;
  llvm::StringSet<> raised;
  for (auto &[name, index] : indices) {
    Inputs::Range &range = inputs.getRange(name);
    if (!raised.insert(name).second || range.low >= 4 ||
        range.low + 1 >= range.bound)
      continue;
    ++range.low;
    isNarrowed = true;
  }
  return isNarrowed;
}

LogicalResult ExactCheck::runPrograms() {
  SmallVector<SmallVector<Datum>> blocks(byRank.size());
  for (auto [rank, function] : llvm::enumerate(byRank))
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (!isa<RankedTensorType>(argument.getType())) {
        blocks[rank].push_back(arguments[index]);
        continue;
      }
      blocks[rank].push_back(getBlockOf(
          arguments[index], cast<RankedTensorType>(argument.getType()),
          getArgSharding(function, index), rank));
      if (!blocks[rank].back().tensor)
        return session.fail(function, "argument " + Twine(index) +
                                          " isn't the rank's block of it");
    }
  auto getParameter = [&](Operation *op, int64_t rank) {
    auto it = parameters.find(cast<nn::ParameterOp>(op).getFqn());
    return it == parameters.end()
               ? Datum()
               : getBlockOf(it->second,
                            cast<RankedTensorType>(op->getResult(0).getType()),
                            op->getAttrOfType<ShardingAttr>(kShardingAttr),
                            rank);
  };
  session.getParameter = getParameter;
  session.meaning.isReference = false;
  auto finished = runRanks(session, byRank, blocks);
  if (failed(finished))
    return failure();
  machines = std::move(*finished);
  return success();
}

static std::string print(Scalar number, Type type) {
  if (type.isInteger(1))
    return number.bits ? "true" : "false";
  if (!isa<FloatType>(type))
    return std::to_string(number.getInt());
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", getValue(number));
  return text;
}

/// Whether two unequal numbers differ by more than rounding errors; records
/// those that don't. An infinite number may become NaN when it is combined from
/// several contributions.
bool ExactCheck::isDifferent(Scalar found, Scalar expected, Type element) {
  if (!isa<FloatType>(element) || isProven ||
      session.meaning.getMode() == Interpretation::Mode::Free)
    return !(isa<FloatType>(element) && found.bits == kNaN &&
             (expected.bits == kInfinity || expected.bits == kMinusInfinity));
  if (found.bits == kNaN && !isFinite(expected))
    return false;
  if (!isFinite(found) || !isFinite(expected) ||
      !areClose(getValue(found), getValue(expected)))
    return true;
  areSomeClose = true;
  return false;
}

std::optional<Difference> ExactCheck::compare(const Datum &whole,
                                              ArrayRef<Datum> blocks,
                                              ShardingAttr sharding,
                                              Type element, int64_t *numWrong) {
  std::optional<Difference> first;
  // Reduce contributions on each rank of their group.
  SmallVector<Datum> reduced(blocks);
  for (PartialAttr partial : sharding.getPartial()) {
    SmallVector<Datum> before = reduced;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      auto parts =
          llvm::map_to_vector(mesh.getGroupOf(rank, partial.getAxis()),
                              [&](int64_t member) { return before[member]; });
      reduced[rank] = reduceParts(session, parts, partial.getKind(), element);
    }
  }
  ArrayRef<int64_t> shape = whole.tensor->shape;
  SmallVector<int64_t> strides = getStrides(shape);
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    TensorBlock block = getBlock(shape, sharding, mesh, rank);
    SmallVector<int64_t> size = getBlockShape(block);
    if (!reduced[rank].tensor || reduced[rank].tensor->shape != size) {
      if (numWrong)
        *numWrong = std::numeric_limits<int64_t>::max();
      if (!first)
        first = Difference{rank, {}, {}, {}, {}};
      return first;
    }
    if (exact::getNumElements(size) == 0)
      continue;
    // The global index of each local index, by dimension.
    SmallVector<SmallVector<int64_t>> positions;
    for (const auto &intervals : block) {
      positions.emplace_back();
      for (Interval interval : intervals)
        for (int64_t i = 0; i < interval.size; ++i)
          positions.back().push_back(interval.offset + i);
    }
    SmallVector<int64_t> index(size.size(), 0);
    size_t next = 0;
    do {
      int64_t at = 0;
      for (size_t dim = 0; dim < index.size(); ++dim)
        at += positions[dim][index[dim]] * strides[dim];
      Scalar found = reduced[rank].tensor->data[next++];
      Scalar expected = whole.tensor->data[at];
      if (found.bits == expected.bits || !isDifferent(found, expected, element))
        continue;
      if (numWrong)
        ++*numWrong;
      if (first)
        continue;
      first = Difference{
          rank, index, {}, print(found, element), print(expected, element)};
      for (size_t dim = 0; dim < index.size(); ++dim)
        first->global.push_back(positions[dim][index[dim]]);
      if (!numWrong)
        return first;
    } while (advance(index, size));
  }
  return first;
}

SmallVector<std::pair<std::string, std::string>> ExactCheck::printInputs() {
  SmallVector<std::pair<std::string, std::string>> printed;
  auto add = [&](const Twine &name, const Datum &datum, Type type) {
    constexpr size_t kMany = 16;
    std::string text;
    if (!datum.tensor) {
      text = print(datum.scalar, type);
    } else {
      ArrayRef<Scalar> data = datum.tensor->data;
      for (Scalar element : data.take_front(kMany))
        text += (text.empty() ? "[" : ", ") +
                print(element, getElementTypeOrSelf(type));
      text += data.size() > kMany ? ", ...]" : data.empty() ? "[]" : "]";
    }
    printed.push_back({name.str(), text});
  };
  for (BlockArgument argument : reference.getArguments())
    if (argument.getArgNumber() < arguments.size())
      add(getName(argument), arguments[argument.getArgNumber()],
          argument.getType());
  reference.walk([&](nn::ParameterOp op) {
    auto it = parameters.find(op.getFqn());
    if (it != parameters.end())
      add("parameter '" + op.getFqn() + "'", it->second, op.getType());
  });
  return printed;
}

ExactCheck::Outcome ExactCheck::stop() {
  reason = session.error;
  at = session.errorLoc;
  return Outcome::NotExecuted;
}

/// Whether constants among its operands keep `op` from ever running `region`.
static bool isNeverEntered(RegionBranchOpInterface op, Region &region) {
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op.getOperation()))
    if (std::optional<APInt> count = loop.getStaticTripCount())
      return count->isZero();
  auto isEntered = [&](ArrayRef<Attribute> operands) {
    SmallVector<RegionSuccessor> successors;
    op.getEntrySuccessorRegions(operands, successors);
    return llvm::any_of(successors, [&](RegionSuccessor successor) {
      return successor.getSuccessor() == &region;
    });
  };
  SmallVector<Attribute> operands(op->getNumOperands());
  if (!isEntered(operands))
    return false; // another of its regions leads there
  for (auto [operand, value] : llvm::zip_equal(op->getOperands(), operands))
    matchPattern(operand, m_Constant(&value));
  return !isEntered(operands);
}

Operation *ExactCheck::findNotEntered() {
  SetVector<Operation *> functions;
  functions.insert(reference);
  for (func::FuncOp function : byRank)
    functions.insert(function);
  Operation *found = nullptr;
  for (size_t i = 0; i < functions.size() && !found; ++i)
    functions[i]->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto call = dyn_cast<CallOpInterface>(op))
        if (Operation *callee = call.resolveCallable())
          functions.insert(callee);
      auto branch = dyn_cast<RegionBranchOpInterface>(op);
      if (!branch || !session.entered.contains(op->getBlock()))
        return WalkResult::advance();
      for (Region &region : op->getRegions())
        if (!region.empty() && !session.entered.contains(&region.front()) &&
            !isNeverEntered(branch, region)) {
          found = op;
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
  return found;
}

void ExactCheck::addBoundaries() {
  if (session.meaning.usesRounding)
    for (double whole : {0.0, 1.0, 2.0})
      for (double number : {whole, whole + 0.5, -whole - 0.5})
        inputs.addBoundary(number);
  for (const auto &site : session.meaning.getSites())
    for (const Site::Values &values : site->values)
      if (values.areConstant())
        for (uint64_t bits : values.bits)
          inputs.addBoundary(llvm::bit_cast<double>(bits));
}

/// Adds the offsets at which blocks of arguments and parameters begin.
static void addBlockBoundaries(Inputs &inputs, func::FuncOp function,
                               MeshOp mesh) {
  auto add = [&](ShardingAttr sharding, TypeAttr type) {
    auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : nullptr;
    if (!sharding || !tensor || sharding.getRank() != tensor.getRank())
      return;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      for (const auto &intervals :
           getBlock(tensor.getShape(), sharding, mesh, rank))
        for (Interval interval : intervals)
          if (interval.offset)
            inputs.addBoundary(interval.offset);
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    add(getArgSharding(function, i),
        function.getArgAttrOfType<TypeAttr>(i, kGlobalTypeAttr));
  function.walk([&](nn::ParameterOp op) {
    add(op->getAttrOfType<ShardingAttr>(kShardingAttr),
        op->getAttrOfType<TypeAttr>(kGlobalTypeAttr));
  });
}

const Site *ExactCheck::findUntested() {
  const Interpretation &meaning = session.meaning;
  DenseSet<uint64_t> keys[2];
  for (const auto &site : meaning.getSites())
    for (uint64_t key : site->keys)
      if (meaning.isSampled(key))
        keys[site->isOfReference].insert(key);
  for (const auto &site : meaning.getSites()) {
    if (!meaning.isVarying(*site))
      continue;
    bool isAlone = llvm::any_of(site->keys, [&](uint64_t key) {
      return meaning.isSampled(key) &&
             !keys[!site->isOfReference].contains(key);
    });
    bool isTested = true;
    switch (site->kind) {
    case Site::Kind::Floats:
      break;
    case Site::Kind::Integers:
      // A comparison inside an op's lowering is part of the op's meaning.
      if (site->isPartOf &&
          !getElementTypeOrSelf(site->op->getResult(0)).isInteger(1))
        break;
      // An index never is the number of rows, so its neighbour is enough.
      isTested = isAlone ? site->sawEqual ||
                               (site->sawNeighbours && inputs.hadBoundaries())
                         : site->sawTrue && site->sawFalse;
      break;
    case Site::Kind::IntegerExtremum:
      isTested = !isAlone || (site->sawLess && site->sawGreater);
      break;
    }
    if (!isTested)
      return site.get();
  }
  return nullptr;
}

ExactCheck::Outcome ExactCheck::run() {
  Interpretation &meaning = session.meaning;
  for (func::FuncOp function : byRank)
    addBlockBoundaries(inputs, function, mesh);
  Outcome outcome = runReal();
  if (outcome != Outcome::Equal || isProven)
    return outcome;
  meaning.isNoting = false;
  std::string number = std::to_string(numInputs);
  if (const Site *site = findUntested()) {
    at = site->op->getLoc();
    reason =
        "none of " + number + " inputs meets the boundary of what it compares";
    return Outcome::NotExecuted;
  }
  if (differForInfinite) {
    at.reset();
    reason = "they agree on finite inputs only; for infinite ones equal sums "
             "may differ";
    return Outcome::NotExecuted;
  }
  if (areSomeClose) {
    at.reset();
    reason = "numbers differ by as little as rounding errors do";
    return Outcome::NotExecuted;
  }
  if (!meaning.usesOrder && !meaning.usesFunctions)
    return outcome;
  uint64_t numFree = meaning.usesOrder ? 4 : 2, numReal = numInputs;
  bool isEqual = true;
  for (uint64_t point = 0; point < numFree && isEqual; ++point)
    isEqual = runAt(Interpretation::Mode::Free, point) == Outcome::Equal;
  if (isEqual) {
    numInputs = numReal;
    return Outcome::Equal;
  }
  // Further inputs may still show a difference.
  session.clearError();
  result.reset();
  numInputs = numReal;
  for (uint64_t point = numReal; point < 4 * Inputs::kNumPoints; ++point) {
    outcome = runRealAt(point);
    if (outcome == Outcome::Different)
      return outcome;
    if (outcome == Outcome::NotExecuted)
      break;
  }
  at.reset();
  reason = "they agree on " + std::to_string(numInputs) +
           " inputs, but compare, round or compute other numbers than the "
           "reference does, so that others may tell them apart";
  return Outcome::NotExecuted;
}

/// One point is enough if every op has run and nothing is compared. Otherwise,
/// further points are tried until every region has run and inputs have met the
/// boundaries.
ExactCheck::Outcome ExactCheck::runReal() {
  constexpr uint64_t kMaxPoints = 64;
  Interpretation &meaning = session.meaning;
  meaning.isNoting = true;
  for (uint64_t next = 0; next < kMaxPoints; ++next) {
    int64_t before = session.budget;
    Outcome outcome = runRealAt(next);
    // A proven program runs on as many inputs as the budget allows.
    if (outcome == Outcome::NotExecuted && isProven && numInputs &&
        session.budget < 0) {
      reason.clear();
      at.reset();
      outcome = Outcome::Equal;
      break;
    }
    if (outcome != Outcome::Equal)
      return outcome;
    inputs.endPoint();
    addBoundaries();
    at.reset();
    if (Operation *notEntered = findNotEntered())
      at = notEntered->getLoc();
    if (meaning.usesIntegers)
      inputs.makeWideIntegers();
    bool isCompared = meaning.usesOrder || meaning.usesIntegers ||
                      !meaning.getSites().empty();
    if (isCompared)
      minPoints = std::max(minPoints, Inputs::kNumPoints);
    // Leave some budget for the points that run() tries afterwards.
    bool isLast = session.budget < 6 * (before - session.budget);
    if (!at && next + 1 >= minPoints &&
        (!isCompared || isLast || inputs.hadBoundaries()))
      return Outcome::Equal;
  }
  if (!at)
    return Outcome::Equal;
  reason = "no inputs are found that run all of its regions";
  return Outcome::NotExecuted;
}

ExactCheck::Outcome ExactCheck::runRealAt(uint64_t point) {
  Outcome outcome = runAt(Interpretation::Mode::Real, point);
  if (outcome != Outcome::Different || !inputs.areInfinite())
    return outcome;
  session.clearError();
  result.reset();
  reason.clear();
  at.reset();
  differForInfinite = true;
  return Outcome::Equal;
}

ExactCheck::Outcome ExactCheck::runAt(Interpretation::Mode mode,
                                      uint64_t point) {
  inputs.setPoint(mode, point);
  session.meaning.setPoint(mode, point);
  do {
    session.outOfRange.clear();
    if (failed(runReference()))
      return stop();
  } while (narrow());
  if (!session.outOfRange.empty()) {
    at = session.outOfRange.front().op->getLoc();
    reason = "no inputs are found for which its indices are in range";
    return Outcome::NotExecuted;
  }
  if (failed(runPrograms()))
    return stop();
  if (!session.outOfRange.empty()) {
    at = session.outOfRange.front().op->getLoc();
    reason = "an index is out of range that is in range in the reference";
    return Outcome::Different;
  }
  for (unsigned index = 0; index < reference.getNumResults(); ++index) {
    auto type = dyn_cast<RankedTensorType>(reference.getResultTypes()[index]);
    if (!type) {
      for (auto [rank, machine] : llvm::enumerate(machines))
        if (machine->getResults()[index].scalar.bits !=
            whole->getResults()[index].scalar.bits) {
          reason = "result " + std::to_string(index) +
                   " is another number on "
                   "rank " +
                   std::to_string(rank);
          return Outcome::Different;
        }
      continue;
    }
    ShardingAttr sharding = getResultSharding(byRank.front(), index);
    auto blocks = llvm::map_to_vector(machines, [&](const auto &machine) {
      return machine->getResults()[index];
    });
    if (!sharding || sharding.getRank() != type.getRank()) {
      reason = "result " + std::to_string(index) + " has no placement";
      return Outcome::NotExecuted;
    }
    auto found = compare(whole->getResults()[index], blocks, sharding,
                         type.getElementType());
    if (!found)
      continue;
    difference = *found;
    result = index;
    return Outcome::Different;
  }
  ++numInputs;
  return Outcome::Equal;
}

//===----------------------------------------------------------------------===//
// Blame
//===----------------------------------------------------------------------===//

std::optional<Difference> ExactCheck::findDifference(Operation *op,
                                                     unsigned program,
                                                     Operation *ofReference) {
  if (machines.empty() || op->getNumResults() != 1 ||
      ofReference->getNumResults() != 1 || programs.size() > 1)
    return std::nullopt;
  auto local = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto global = dyn_cast<RankedTensorType>(ofReference->getResult(0).getType());
  if (!local || !global || local.getRank() != global.getRank() ||
      !whole->has(ofReference->getResult(0)))
    return std::nullopt;
  auto blocks = llvm::map_to_vector(machines, [&](const auto &machine) {
    return machine->get(op->getResult(0));
  });
  // Try placements that split each dimension by at most one mesh dimension and
  // give blocks of this type.
  MLIRContext *context = mesh.getContext();
  std::optional<Difference> best;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  SmallVector<AxisListAttr> dims(global.getRank(),
                                 AxisListAttr::get(context, {}));
  auto search = [&](auto &&search, int64_t dim) -> bool {
    if (dim == global.getRank()) {
      auto sharding = ShardingAttr::get(
          context, FlatSymbolRefAttr::get(mesh.getSymNameAttr()), dims, {});
      int64_t numWrong = 0;
      auto found = compare(whole->get(ofReference->getResult(0)), blocks,
                           sharding, global.getElementType(), &numWrong);
      if (numWrong < fewest) {
        fewest = numWrong;
        best = found;
      }
      return numWrong == 0;
    }
    if (local.getDimSize(dim) == global.getDimSize(dim))
      return search(search, dim + 1);
    for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
      auto axis = AxisRefAttr::get(context, mesh.getAxisName(i));
      auto list = AxisListAttr::get(context, axis);
      if (getBlockShape({getDimBlock(global.getDimSize(dim), list, mesh, 0)})
                  .front() != local.getDimSize(dim) ||
          llvm::is_contained(ArrayRef(dims).take_front(dim), list))
        continue;
      dims[dim] = list;
      if (search(search, dim + 1))
        return true;
      dims[dim] = AxisListAttr::get(context, {});
    }
    return false;
  };
  search(search, 0);
  return best && !best->global.empty() ? best : std::nullopt;
}
