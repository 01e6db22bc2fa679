//===- ExactCheck.cpp - Programs against a reference, by execution --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExactCheck.h"
#include "mlir/IR/TypeUtilities.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/StringSet.h"

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

ExactCheck::Outcome ExactCheck::stop() {
  reason = session.error;
  at = session.errorLoc;
  return Outcome::NotExecuted;
}

ExactCheck::Outcome ExactCheck::run() {
  Interpretation &meaning = session.meaning;
  addBlockBoundaries();
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
