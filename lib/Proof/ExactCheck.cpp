//===- ExactCheck.cpp - Programs against a reference, by execution --------===//

#include "ExactCheck.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Utils.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::exact;

ExactCheck::ExactCheck(func::FuncOp reference, ArrayRef<Program> programs,
                       MeshOp mesh, int64_t budget)
    : reference(reference), programs(programs), mesh(mesh), budget(budget),
      session(mesh, budget), ranges(reference.getNumArguments()) {
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

/// Numbers are large, small, or of either sign in turn, so that conditions come
/// out both ways; what is an index is in its range always.
Datum ExactCheck::makeInput(StringRef name, RankedTensorType type) {
  Range range = ranges.lookup(name);
  if (range.bound == Range().bound && point % 3) {
    range.bound = 8;
    range.low = point % 3 == 1 ? 0 : -8;
  }
  auto tensor = std::make_shared<Tensor>();
  tensor->shape.assign(type.getShape().begin(), type.getShape().end());
  int64_t size = exact::getNumElements(tensor->shape);
  session.budget -= size;
  if (session.budget < 0)
    return {};
  tensor->data.resize(size);
  uint64_t seed = llvm::xxHash64(name) + point;
  Type element = type.getElementType();
  bool isNumber = !isa<FloatType>(element) && !element.isInteger(1);
  uint64_t low = isNumber ? range.low : 0;
  uint64_t count = isa<FloatType>(element) ? kPrime
                   : element.isInteger(1)
                       ? 2
                       : std::max<int64_t>(range.bound - range.low, 1);
  uint64_t width = element.isInteger() ? element.getIntOrFloatBitWidth() : 64;
  for (int64_t i = 0; i < size; ++i)
    tensor->data[i] =
        wrap(low + hash({seed, static_cast<uint64_t>(i)}) % count, width);
  return {tensor, 0};
}

/// A rank's block; of a Partial, contributions that make the value up.
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
        uint64_t number = hash({value, static_cast<uint64_t>(of)});
        return isFloat ? number : number % (1 << 20);
      };
      if (partial.getKind() == ReductionKind::Product && index)
        value = 1;
      if (partial.getKind() != ReductionKind::Sum)
        continue;
      // The first rank has what the others leave.
      if (index) {
        value = share(index);
        continue;
      }
      Scalar rest = value;
      for (int64_t other = 1; other < size; ++other)
        rest = isFloat ? sub(rest, share(other)) : rest - share(other);
      value = rest;
    }
    block = {part, 0};
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
        return session.fail(reference, "an argument is no tensor or number");
      Datum one = makeInput(getName(argument),
                            RankedTensorType::get({}, argument.getType()));
      arguments.push_back({nullptr, one.tensor ? one.tensor->data[0] : 0});
      continue;
    }
    arguments.push_back(makeInput(getName(argument), type));
    if (!arguments.back().tensor)
      return session.spend(reference, 0);
  }
  auto getParameter = [&](Operation *op, int64_t) {
    Datum &value = parameters[cast<nn::ParameterOp>(op).getFqn()];
    if (!value.tensor)
      value = makeInput(cast<nn::ParameterOp>(op).getFqn(),
                        cast<RankedTensorType>(op->getResult(0).getType()));
    return value;
  };
  session.getParameter = getParameter;
  whole = std::make_unique<Machine>(session, reference, 0, arguments);
  return success(whole->run() == Machine::Status::Finished);
}

/// Changes the integer inputs that indices come from which were out of range:
/// below the bound first, then away from zero, of which something may be
/// subtracted; false if that is of no use either.
bool ExactCheck::narrow() {
  bool narrowed = false;
  for (auto [op, bound] : session.outOfRange) {
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
    // Where an op takes its indices one by one, its tensors are data. One index
    // of a few that are possible may be right by chance.
    if (llvm::any_of(op->getOperands(), isNumber)) {
      push(op, isNumber);
      minPoints = 8;
    } else {
      push(op, isAny);
    }
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      std::string name;
      if (auto parameter = value.getDefiningOp<nn::ParameterOp>()) {
        name = parameter.getFqn();
      } else if (Operation *producer = value.getDefiningOp()) {
        push(producer, isAny);
        continue;
      } else if (auto argument = cast<BlockArgument>(value);
                 argument.getOwner()->getParentOp() == reference) {
        name = getName(argument);
      } else {
        continue;
      }
      Range &range = ranges[name];
      if (range.bound > bound) {
        range.bound = bound;
        narrowed = true;
      } else if (range.low < 4 && range.low + 1 < range.bound) {
        ++range.low;
        narrowed = true;
      }
    }
  }
  return narrowed;
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
  auto finished = runRanks(session, byRank, blocks);
  if (failed(finished))
    return failure();
  machines = std::move(*finished);
  return success();
}

std::optional<Difference> ExactCheck::compare(const Datum &whole,
                                              ArrayRef<Datum> blocks,
                                              ShardingAttr sharding,
                                              Type element, int64_t *numWrong) {
  std::optional<Difference> first;
  // Contributions count together, on each rank of their group.
  SmallVector<Datum> reduced(blocks);
  for (PartialAttr partial : sharding.getPartial()) {
    SmallVector<Datum> before = reduced;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      auto parts =
          llvm::map_to_vector(mesh.getGroupOf(rank, partial.getAxis()),
                              [&](int64_t member) { return before[member]; });
      reduced[rank] = reduceParts(parts, partial.getKind(), element);
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
        first = Difference{rank, {}, {}};
      return first;
    }
    if (exact::getNumElements(size) == 0)
      continue;
    // Where the positions of a dimension are in the whole.
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
      if (reduced[rank].tensor->data[next++] == whole.tensor->data[at])
        continue;
      if (numWrong)
        ++*numWrong;
      if (first)
        continue;
      first = Difference{rank, index, {}};
      for (size_t dim = 0; dim < index.size(); ++dim)
        first->global.push_back(positions[dim][index[dim]]);
      if (!numWrong)
        return first;
    } while (advance(index, size));
  }
  return first;
}

ExactCheck::Outcome ExactCheck::stop() {
  reason = session.error;
  at = session.errorOp;
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

/// One point is enough for what runs always and everywhere; others are tried
/// until all that may run has run.
ExactCheck::Outcome ExactCheck::run() {
  constexpr uint64_t kMaxPoints = 64;
  for (uint64_t next = 0; next < kMaxPoints; ++next) {
    Outcome outcome = runAt(next);
    if (outcome != Outcome::Equal)
      return outcome;
    at = findNotEntered();
    if (!at && next + 1 >= minPoints)
      return Outcome::Equal;
  }
  reason = "no inputs are found that run all of its regions";
  return Outcome::NotExecuted;
}

ExactCheck::Outcome ExactCheck::runAt(uint64_t inputs) {
  point = inputs;
  do {
    session.outOfRange.clear();
    if (failed(runReference()))
      return stop();
  } while (narrow());
  if (!session.outOfRange.empty()) {
    at = session.outOfRange.front().first;
    reason = "no inputs are found for which its indices are in range";
    return Outcome::NotExecuted;
  }
  if (failed(runPrograms()))
    return stop();
  if (!session.outOfRange.empty()) {
    at = session.outOfRange.front().first;
    reason = "an index is out of range that is in range in the reference";
    return Outcome::Different;
  }
  for (unsigned index = 0; index < reference.getNumResults(); ++index) {
    auto type = dyn_cast<RankedTensorType>(reference.getResultTypes()[index]);
    if (!type) {
      for (auto [rank, machine] : llvm::enumerate(machines))
        if (machine->getResults()[index].scalar !=
            whole->getResults()[index].scalar) {
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
  // Placements of one mesh dimension each that give blocks of this type.
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
