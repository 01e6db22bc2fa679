//===- Redistribution.cpp - From one placement to another -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Redistribution/Redistribution.h"
#include "LocalSlices.h"
#include "RedistributionSearch.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Dialect/TP/Elements.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

StringRef tp::stringifyStep(RedistributionStep::Kind kind) {
  switch (kind) {
  case RedistributionStep::LocalSlice:
    return LocalSliceOp::getOperationName().split('.').second;
  case RedistributionStep::AllGather:
    return AllGatherOp::getOperationName().split('.').second;
  case RedistributionStep::AllReduce:
    return AllReduceOp::getOperationName().split('.').second;
  case RedistributionStep::ReduceScatter:
    return ReduceScatterOp::getOperationName().split('.').second;
  case RedistributionStep::AllToAll:
    return AllToAllOp::getOperationName().split('.').second;
  case RedistributionStep::Permute:
    return PermuteOp::getOperationName().split('.').second;
  case RedistributionStep::Exchange:
    return ExchangeOp::getOperationName().split('.').second;
  }
  llvm_unreachable("unknown step");
}

int64_t RedistributionPlan::getNumCollectives() const {
  return llvm::count_if(steps, [](const RedistributionStep &step) {
    return step.kind != RedistributionStep::LocalSlice;
  });
}

RankedTensorType RedistributionPlan::getViewed(RankedTensorType type) const {
  if (view.empty())
    return type;
  SmallVector<int64_t> shape;
  for (ArrayRef<int64_t> sizes : view)
    llvm::append_range(shape, sizes);
  return type.clone(shape);
}

/// Whether `to` is Partial only over axes that `from` is Partial over, with the
/// same reduction.
static bool isReachable(ShardingAttr from, ShardingAttr to, MeshOp mesh) {
  return llvm::all_of(to.getPartial(), [&](PartialAttr wanted) {
    return mesh.getAxisSize(wanted.getAxis()) == 1 ||
           llvm::is_contained(from.getPartial(), wanted);
  });
}

LogicalResult
tp::verifyRedistribution(ShardingAttr from, ShardingAttr to, MeshOp mesh,
                         function_ref<InFlightDiagnostic()> emitError) {
  if (isReachable(from, to, mesh))
    return success();
  return emitError() << "can't redistribute from "
                     << printPlacements(from, mesh) << " to "
                     << printPlacements(to, mesh)
                     << ": no value becomes Partial by a redistribution";
}

namespace {

/// The most states that a search over parts of mesh dimensions looks at.
constexpr int64_t kMaxPartStates = 2000;

/// Plans one redistribution.
class Planning {
public:
  Planning(MeshOp mesh, ShardingAttr from, ShardingAttr to,
           RankedTensorType type, RedistributionOptions options);
  RedistributionPlan run();
  uint64_t getNumStates() const { return numStates; }

private:
  /// A tensor, in its own shape or in a view, and its placements.
  struct Problem {
    SmallVector<int64_t> shape;
    ShardingAttr from, to;
    SmallVector<SmallVector<int64_t>> view = {};
  };
  struct Solution {
    Problem problem;
    std::unique_ptr<Space> space;
    SmallVector<Move> moves;
    int64_t bytes = 0;
  };

  int64_t getMaxReductions() const;
  bool hasPending() const { return target.getPartial() != from.getPartial(); }
  int64_t getBound() const;
  std::optional<Problem> getView(ShardingAttr end) const;
  void attempt(const Problem &problem, Granularity granularity, bool all,
               SearchOptions search);
  void attemptAll(ShardingAttr end, SearchOptions search);
  void searchPlan();
  void append(const Solution &solution);
  void appendExchange(ShardingAttr result);
  bool appendSlices(ArrayRef<int64_t> shape, ShardingAttr before,
                    ShardingAttr after);
  void addReceived(ArrayRef<int64_t> elements) {
    for (auto [sum, more] : llvm::zip_equal(received, elements))
      sum += more;
  }
  void certify(RedistributionPlan &plan);

  MeshOp mesh;
  /// Both without axes of size 1; the target's Partials are in the source's
  /// order.
  ShardingAttr from, target;
  RankedTensorType type;
  RedistributionOptions options;
  std::vector<TensorBlock> source, wanted;

  std::optional<Solution> best;
  SmallVector<RedistributionStep> steps;
  SmallVector<SmallVector<int64_t>> view;
  SmallVector<int64_t> received;
  /// The largest block so far, in elements.
  int64_t peak = 0;
  uint64_t numStates = 0;
};

} // namespace

static ShardingAttr dropUnitAxes(ShardingAttr sharding, MeshOp mesh) {
  for (int64_t i = 0, e = mesh.getNumAxes(); i < e; ++i)
    if (mesh.getAxisSizes()[i] == 1)
      sharding = sharding.without(mesh.getAxisName(i));
  return sharding;
}

Planning::Planning(MeshOp mesh, ShardingAttr from, ShardingAttr to,
                   RankedTensorType type, RedistributionOptions options)
    : mesh(mesh), from(dropUnitAxes(from, mesh)),
      target(dropUnitAxes(to, mesh)), type(type), options(options),
      received(mesh.getNumRanks(), 0) {
  SmallVector<PartialAttr> partial;
  for (PartialAttr entry : this->from.getPartial())
    if (llvm::is_contained(target.getPartial(), entry))
      partial.push_back(entry);
  target = ShardingAttr::get(to.getContext(), to.getMesh(), target.getDims(),
                             partial);
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    source.push_back(getBlock(type.getShape(), this->from, mesh, rank));
    wanted.push_back(getBlock(type.getShape(), target, mesh, rank));
  }
}

/// Joins consecutive moves of one kind that make up one step.
static SmallVector<Move> joinMoves(ArrayRef<Move> moves) {
  SmallVector<Move> joined;
  for (const Move &move : moves) {
    Move *last = joined.empty() ? nullptr : &joined.back();
    bool joins = last && last->kind == move.kind && last->dim == move.dim &&
                 last->reduction == move.reduction;
    bool atEnd = move.kind == RedistributionStep::LocalSlice ||
                 move.kind == RedistributionStep::ReduceScatter;
    if (joins && atEnd) {
      last->atoms.append(move.atoms);
      last->result = move.result;
    } else if (joins && move.kind == RedistributionStep::AllGather) {
      last->atoms.insert(last->atoms.begin(), move.atoms.begin(),
                         move.atoms.end());
      last->result = move.result;
    } else {
      joined.push_back(move);
    }
  }
  return joined;
}

void Planning::append(const Solution &solution) {
  const Space &space = *solution.space;
  view = solution.problem.view;
  State state = space.getState(solution.problem.from);
  for (const Move &move : joinMoves(solution.moves)) {
    addReceived(space.getReceived(state, move));
    peak = std::max(peak, space.getPeak(move.result));
    RedistributionStep step{move.kind, space.getAxes(move.atoms), move.dim,
                            move.concatDim};
    step.reduction = move.reduction;
    if (!move.pairs.empty()) {
      step.axes.clear();
      for (uint8_t atom : move.atoms)
        llvm::append_range(step.axes, space.getAxes(atom));
      step.pairs.assign(move.pairs.begin(), move.pairs.end());
    }
    step.operand = space.getSharding(state);
    step.result = space.getSharding(move.result);
    if (move.kind == RedistributionStep::Permute) {
      // For dimensions with segments, only the sizes are known: they don't
      // move.
      uint64_t lists = 0;
      for (const State &side : {state, move.result})
        for (auto [dim, list] : llvm::enumerate(side.dims))
          if (!space.isFrozen(dim))
            lists |= list->mask;
      SmallVector<uint8_t> used;
      for (uint8_t atom = 0; atom < space.getNumAtoms(); ++atom)
        if (lists >> atom & 1)
          used.push_back(atom);
      step.axes = space.getAxes(used);
      step.source = space.getSources(state, move.result, step.axes);
      // Every rank already holds its new block; only the placement's spelling
      // changes.
      if (llvm::equal(step.source, llvm::seq<int64_t>(step.source.size()))) {
        state = move.result;
        continue;
      }
    } else if (move.kind == RedistributionStep::Exchange) {
      if (appendSlices(solution.problem.shape, step.operand, step.result)) {
        state = move.result;
        continue;
      }
      step.axes = getSplittingAxes(step.operand);
    }
    steps.push_back(std::move(step));
    state = move.result;
  }
  if (!steps.empty())
    steps.back().result = solution.problem.to;
}

/// If ranks already have all elements, appends slices instead of an exchange.
/// Returns whether it did.
bool Planning::appendSlices(ArrayRef<int64_t> shape, ShardingAttr before,
                            ShardingAttr after) {
  auto slices = findLocalSlices(mesh, shape, before, after);
  if (slices)
    llvm::append_range(steps, *slices);
  return slices.has_value();
}

/// Appends one exchange from the reduced `from` to the target.
void Planning::appendExchange(ShardingAttr result) {
  RedistributionStep step{RedistributionStep::Exchange, getSplittingAxes(from)};
  step.operand = ShardingAttr::get(from.getContext(), from.getMesh(),
                                   from.getDims(), result.getPartial());
  step.result = result;
  if (appendSlices(type.getShape(), step.operand, result))
    return;
  steps.push_back(std::move(step));
  for (auto [rank, sum] : llvm::enumerate(received)) {
    int64_t size = getNumElements(wanted[rank]);
    sum += size - getNumShared(source[rank], wanted[rank]);
    peak = std::max(peak, size);
  }
}

static int64_t getNumCollectives(ArrayRef<Move> moves) {
  return llvm::count_if(moves, [](const Move &move) {
    return move.kind != RedistributionStep::LocalSlice;
  });
}

static size_t getCommonPrefix(AxisListAttr a, AxisListAttr b) {
  auto differ = [](auto pair) {
    auto [x, y] = pair;
    return x != y;
  };
  auto pairs = llvm::zip(a.getAxes(), b.getAxes());
  return std::distance(pairs.begin(), llvm::find_if(pairs, differ));
}

/// The number of collectives that a plan with reductions may have: one for each
/// place that a reduced axis goes to (axes of one kind that follow each other
/// there share one), and one for each other axis that moves.
int64_t Planning::getMaxReductions() const {
  // A place is a dimension, and the number of unreduced axes in front of it.
  using Place = std::pair<int64_t, int64_t>;
  llvm::SmallSetVector<std::pair<ReductionKind, Place>, 4> reductions;
  MeshOp mesh = this->mesh; // an op's accessors aren't const
  SmallVector<PartialAttr> reduced;
  llvm::copy_if(from.getPartial(), std::back_inserter(reduced),
                [&](PartialAttr entry) {
                  return !llvm::is_contained(target.getPartial(), entry);
                });
  for (PartialAttr entry : reduced) {
    auto isOf = [](AxisRefAttr axis, PartialAttr entry) {
      return axis.overlaps(entry.getAxis());
    };
    // Parts of the axis may go to several places, or to none.
    int64_t scattered = 1;
    for (auto [dim, axes] : llvm::enumerate(target.getDims())) {
      int64_t others = 0;
      for (AxisRefAttr axis : axes) {
        if (isOf(axis, entry)) {
          reductions.insert(
              {entry.getKind(), {static_cast<int64_t>(dim), others}});
          scattered *= mesh.getAxisSize(axis);
        }
        others += llvm::none_of(
            reduced, [&](PartialAttr other) { return isOf(axis, other); });
      }
    }
    if (scattered < mesh.getAxisSize(entry.getAxis()))
      reductions.insert({entry.getKind(), {-1, 0}});
  }
  // The common prefix of a dimension's axes before and after stays.
  int64_t moving = 0;
  for (auto [before, after] : llvm::zip_equal(from.getDims(), target.getDims()))
    moving += before.size() - getCommonPrefix(before, after);
  return reductions.size() + moving;
}

static int64_t getLargest(ArrayRef<TensorBlock> blocks) {
  int64_t largest = 0;
  for (const TensorBlock &block : blocks)
    largest = std::max(largest, getNumElements(block));
  return largest;
}

/// The number of elements that ranks need for the target and don't have.
int64_t Planning::getBound() const {
  int64_t needed = 0;
  for (auto [have, want] : llvm::zip_equal(source, wanted))
    needed += getNumElements(want) - getNumShared(have, want);
  return needed;
}

/// Views each dimension as the product of the parts into which both placements
/// cut it, if the cuts have common bounds. Every axis of either placement then
/// splits all of one part. Nullopt if no dimension is divided.
std::optional<Planning::Problem> Planning::getView(ShardingAttr end) const {
  MLIRContext *context = from.getContext();
  MeshOp mesh = this->mesh;
  llvm::StringMap<PartBounds> axisBounds;
  auto mention = [&](AxisRefAttr axis) {
    auto whole = AxisRefAttr::get(context, axis.getName());
    PartBounds &bounds =
        axisBounds.try_emplace(axis.getName(), mesh.getAxisSize(whole))
            .first->second;
    return bounds.add(getPartBegin(axis)) && bounds.add(getPartEnd(mesh, axis));
  };
  for (ShardingAttr sharding : {from, end}) {
    for (AxisListAttr list : sharding.getDims())
      if (!llvm::all_of(list, mention))
        return std::nullopt;
    for (PartialAttr partial : sharding.getPartial())
      if (!mention(partial.getAxis()))
        return std::nullopt;
  }
  auto getParts = [&](AxisListAttr list) {
    SmallVector<AxisRefAttr> parts;
    for (AxisRefAttr axis : list) {
      ArrayRef<int64_t> bounds =
          axisBounds.find(axis.getName())
              ->second.getBetween(getPartBegin(axis), getPartEnd(mesh, axis));
      for (auto [b, e] : llvm::zip(bounds, bounds.drop_front()))
        parts.push_back(getPart(mesh, axis.getName(), b, e));
    }
    return parts;
  };

  int64_t rank = type.getRank();
  SmallVector<std::optional<PartBounds>> dimBounds(rank);
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t dim = 0; dim < rank; ++dim) {
      AxisListAttr have = from.getDims()[dim], want = end.getDims()[dim];
      dimBounds[dim].reset();
      if (!have.getSegments().empty() || !want.getSegments().empty() ||
          type.getDimSize(dim) == 0)
        continue;
      PartBounds bounds(type.getDimSize(dim));
      bool fits = true;
      for (AxisListAttr list : {have, want}) {
        int64_t product = 1;
        for (AxisRefAttr part : getParts(list)) {
          product *= mesh.getAxisSize(part);
          fits = fits && bounds.add(product);
        }
      }
      if (!fits)
        continue;
      // Also cuts the parts that contain a bound of the other placement.
      for (AxisListAttr list : {have, want}) {
        int64_t product = 1;
        for (AxisRefAttr part : getParts(list)) {
          int64_t size = mesh.getAxisSize(part);
          for (int64_t bound : bounds.getBetween(product, product * size)) {
            PartBounds &cuts = axisBounds.find(part.getName())->second;
            size_t before = cuts.get().size();
            cuts.add(getPartBegin(part) * (bound / product));
            changed |= cuts.get().size() != before;
          }
          product *= size;
        }
      }
      dimBounds[dim] = std::move(bounds);
    }
  }

  Problem problem;
  SmallVector<AxisListAttr> lists[2];
  for (int64_t dim = 0; dim < rank; ++dim) {
    SmallVector<int64_t> &sizes = problem.view.emplace_back();
    AxisListAttr ends[] = {from.getDims()[dim], end.getDims()[dim]};
    if (!dimBounds[dim]) {
      sizes.push_back(type.getDimSize(dim));
      lists[0].push_back(ends[0]);
      lists[1].push_back(ends[1]);
    } else {
      ArrayRef<int64_t> bounds = dimBounds[dim]->get();
      for (auto [b, e] : llvm::zip(bounds, bounds.drop_front()))
        sizes.push_back(e / b);
      if (sizes.empty())
        sizes.push_back(1);
      for (int side : {0, 1}) {
        SmallVector<AxisRefAttr> parts = getParts(ends[side]);
        for (size_t i = 0; i < sizes.size(); ++i)
          lists[side].push_back(AxisListAttr::get(
              context,
              i < parts.size() ? ArrayRef(parts[i]) : ArrayRef<AxisRefAttr>()));
      }
    }
    llvm::append_range(problem.shape, sizes);
  }
  if (static_cast<int64_t>(problem.shape.size()) == rank)
    return std::nullopt;
  problem.from =
      ShardingAttr::get(context, from.getMesh(), lists[0], from.getPartial());
  problem.to =
      ShardingAttr::get(context, from.getMesh(), lists[1], end.getPartial());
  return problem;
}

void Planning::attempt(const Problem &problem, Granularity granularity,
                       bool all, SearchOptions search) {
  auto space = std::make_unique<Space>(mesh, problem.shape, problem.from,
                                       problem.to, granularity, all);
  if (!space->isFaithful())
    return;
  State start = space->getState(problem.from),
        end = space->getState(problem.to);
  search.below = best ? best->bytes : -1;
  auto moves = redistribution::search(*space, start, end, search, numStates);
  // Splitting up reductions can save bytes, but must not add too many
  // collectives.
  if (hasPending() &&
      (!moves || getNumCollectives(joinMoves(*moves)) > getMaxReductions())) {
    search.fewestCollectives = true;
    moves = redistribution::search(*space, start, end, search, numStates);
  }
  if (!moves)
    return;
  int64_t bytes = 0;
  State state = start;
  for (const Move &move : *moves) {
    bytes += llvm::sum_of(space->getReceived(state, move));
    state = move.result;
  }
  best = Solution{problem, std::move(space), std::move(*moves), bytes};
}

void Planning::attemptAll(ShardingAttr end, SearchOptions search) {
  Problem plain{SmallVector<int64_t>(type.getShape()), from, end};
  attempt(plain, Granularity::Common, /*all=*/false, search);
  if (!best)
    attempt(plain, Granularity::Mentioned, /*all=*/false, search);
  if (options.oneShot)
    return;
  int64_t bound = getBound();
  auto isOptimal = [&]() { return best && best->bytes <= bound; };
  std::optional<Problem> viewed;
  if (!isOptimal())
    viewed = getView(end);
  search.maxStates = kMaxPartStates;
  bool even =
      isEven(type.getShape(), from, mesh) && isEven(type.getShape(), end, mesh);
  // Whether there are mesh dimensions that neither placement mentions, and
  // whether primes come in different orders.
  bool hasOthers = false, hasOrders = false;
  for (int64_t i = 0, e = mesh.getNumAxes(); i < e; ++i) {
    int64_t size = mesh.getAxisSizes()[i];
    auto axis = AxisRefAttr::get(from.getContext(), mesh.getAxisName(i));
    auto mentions = [&](ShardingAttr sharding) {
      auto overlaps = [&](AxisRefAttr other) { return other.overlaps(axis); };
      return llvm::any_of(sharding.getDims(),
                          [&](AxisListAttr list) {
                            return llvm::any_of(list, overlaps);
                          }) ||
             llvm::any_of(sharding.getPartial(), [&](PartialAttr partial) {
               return overlaps(partial.getAxis());
             });
    };
    hasOthers |= size > 1 && !mentions(from) && !mentions(end);
    hasOrders |= !llvm::all_equal(getPrimes(size));
  }
  for (bool mostlyEven : {true, false})
    for (bool all : {false, true}) {
      if ((even && mostlyEven) || (all && !hasOthers))
        continue;
      search.mostlyEven = mostlyEven;
      if (viewed && !isOptimal())
        attempt(*viewed, Granularity::Common, all, search);
      if (all && !isOptimal())
        attempt(plain, Granularity::Common, all, search);
      if (!isOptimal())
        attempt(plain, Granularity::SmallPrimes, all, search);
      if (hasOrders && !isOptimal())
        attempt(plain, Granularity::LargePrimes, all, search);
    }
}

void Planning::searchPlan() {
  if (!hasPending() && getBound() == 0 &&
      appendSlices(type.getShape(), from, target))
    return;
  auto segmentsDiffer = [](auto pair) {
    auto [a, b] = pair;
    return a != b && !(a.getSegments().empty() && b.getSegments().empty());
  };
  // No collective handles blocks of several pieces: the tensor is reduced in
  // place and then exchanged.
  ShardingAttr reduced = ShardingAttr::get(from.getContext(), from.getMesh(),
                                           from.getDims(), target.getPartial());
  ShardingAttr reachable = target;
  if (llvm::any_of(llvm::zip(from.getDims(), target.getDims()), segmentsDiffer))
    reachable = reduced;

  SearchOptions search;
  search.exchange = options.oneShot;
  // If sizes divide, no intermediate block has to be larger.
  int64_t before = getLargest(source), after = getLargest(wanted);
  bool even = isEven(type.getShape(), from, mesh) &&
              isEven(type.getShape(), target, mesh);
  if (options.memory || (!options.oneShot && even))
    search.maxPeak = std::max(before, after);
  else if (!options.oneShot)
    search.maxPeak = before + after;

  attemptAll(reachable, search);
  // If they don't, there may be no plan within this limit.
  if (!best && search.maxPeak >= 0 && !options.memory) {
    search.maxPeak = -1;
    attemptAll(reachable, search);
  }
  if (!best && hasPending() && reachable == target) {
    reachable = reduced;
    attemptAll(reachable, search);
  }
  if (best)
    append(*best);
  if (!best || reachable != target)
    appendExchange(target);
}

void Planning::certify(RedistributionPlan &plan) {
  int64_t width = getElementBytes(type.getElementType());
  int64_t largest = 0, total = 0, most = 0, elements = 0;
  for (auto [have, want] : llvm::zip_equal(source, wanted)) {
    int64_t size = getNumElements(want);
    int64_t missing = size - getNumShared(have, want);
    largest = std::max({largest, getNumElements(have), size});
    total += missing;
    most = std::max(most, missing);
    elements += size;
  }
  if (hasPending()) {
    // For each element, n parts are added in n - 1 transfers, and the result
    // reaches the c - 1 other ranks that want it. A Partial that stays
    // multiplies the number of such problems by its number of parts.
    int64_t n = 1, problems = 1;
    for (PartialAttr entry : from.getPartial())
      (llvm::is_contained(target.getPartial(), entry) ? problems : n) *=
          mesh.getAxisSize(entry.getAxis());
    most = 0;
    for (const TensorBlock &want : wanted)
      most = std::max(most, getNumElements(want));
    total = elements + (n - 2) * problems * type.getNumElements();
    most = std::max<int64_t>(most, llvm::divideCeil(total, mesh.getNumRanks()));
  }
  plan.receivedTotal = width * llvm::sum_of(received);
  plan.receivedMax = width * *llvm::max_element(received);
  plan.lowerBoundTotal = width * total;
  plan.lowerBoundMax = width * most;
  plan.peak = width * std::max(peak, largest);
  plan.peakLowerBound = width * largest;
}

RedistributionPlan Planning::run() {
  RedistributionPlan plan;
  if (from != target)
    searchPlan();
  certify(plan);
  plan.steps = std::move(steps);
  plan.view = std::move(view);
  return plan;
}

//===----------------------------------------------------------------------===//
// RedistributionPlanner
//===----------------------------------------------------------------------===//

/// Elements that aren't numbers count as eight bytes.
static RankedTensorType getCountedType(RankedTensorType type) {
  if (type.getElementType().isIntOrIndexOrFloat())
    return type;
  return type.clone(IntegerType::get(type.getContext(), 64));
}

/// Whether `to` only splits dimensions further than `from` does.
static bool isSlice(ShardingAttr from, ShardingAttr to) {
  return llvm::all_of(
      llvm::zip_equal(from.getDims(), to.getDims()), [](auto pair) {
        auto [have, want] = pair;
        return have.getSegments().empty() && want.getSegments().empty() &&
               have.getAxes() == want.getAxes().take_front(have.size());
      });
}

const RedistributionPlan &
RedistributionPlanner::getPlan(ShardingAttr from, ShardingAttr to,
                               RankedTensorType type) {
  auto &entry = plans[{from, to, type}];
  if (!entry) {
    Planning planning(mesh, from, to, type, options);
    entry = std::make_unique<RedistributionPlan>(planning.run());
    numStates += planning.getNumStates();
  }
  return *entry;
}

FailureOr<const RedistributionPlan *>
RedistributionPlanner::plan(ShardingAttr from, ShardingAttr to,
                            RankedTensorType type,
                            function_ref<InFlightDiagnostic()> emitError) {
  if (failed(verifyRedistribution(from, to, mesh, emitError)))
    return failure();
  return &getPlan(from, to, type);
}

CommunicationCost RedistributionPlanner::Price::getCost() const {
  if (!isPossible)
    return CommunicationCost::infinite();
  CommunicationCost cost;
  cost.bytes = bytes;
  cost.collectives = collectives;
  return cost;
}

CommunicationCost RedistributionPlanner::getBound(ShardingAttr from,
                                                  ShardingAttr to,
                                                  RankedTensorType type) {
  return getPrice(from, to, type).getCost();
}

CommunicationCost RedistributionPlanner::getCost(ShardingAttr from,
                                                 ShardingAttr to,
                                                 RankedTensorType type) {
  Price &price = getPrice(from, to, type);
  if (price.isBound) {
    const RedistributionPlan &plan = getPlan(from, to, getCountedType(type));
    price.bytes = plan.receivedTotal;
    price.collectives = plan.getNumCollectives();
    price.isBound = false;
  }
  return price.getCost();
}

ArrayRef<int64_t> RedistributionPlanner::getShared(int64_t size, AxisListAttr a,
                                                   AxisListAttr b) {
  auto [it, inserted] = shared.try_emplace({size, a, b});
  if (inserted)
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      it->second.push_back(getNumShared({getDimBlock(size, a, mesh, rank)},
                                        {getDimBlock(size, b, mesh, rank)}));
  return it->second;
}

int64_t RedistributionPlanner::getTotalShared(ArrayRef<int64_t> shape,
                                              ArrayRef<AxisListAttr> a,
                                              ArrayRef<AxisListAttr> b) {
  SmallVector<int64_t> product(mesh.getNumRanks(), 1);
  for (auto [size, inA, inB] : llvm::zip_equal(shape, a, b))
    for (auto [elements, here] :
         llvm::zip_equal(product, getShared(size, inA, inB)))
      elements *= here;
  return std::accumulate(product.begin(), product.end(), int64_t(0));
}

RedistributionPlanner::Price &
RedistributionPlanner::getPrice(ShardingAttr from, ShardingAttr to,
                                RankedTensorType type) {
  auto &row = prices[{from, type}];
  if (!row)
    row = std::make_unique<DenseMap<ShardingAttr, Price>>();
  auto [it, inserted] = row->try_emplace(to);
  if (inserted && from != to)
    it->second = computePrice(from, to, getCountedType(type));
  return it->second;
}

RedistributionPlanner::Price
RedistributionPlanner::computePrice(ShardingAttr from, ShardingAttr to,
                                    RankedTensorType type) {
  Price price;
  price.isPossible = isReachable(from, to, mesh);
  if (!price.isPossible)
    return price;
  llvm::SmallSetVector<ReductionKind, 2> reductions;
  // Counts like certify().
  int64_t n = 1, problems = 1;
  for (PartialAttr entry : from.getPartial()) {
    int64_t size = mesh.getAxisSize(entry.getAxis());
    bool stays = llvm::is_contained(to.getPartial(), entry);
    (stays ? problems : n) *= size;
    if (!stays && size > 1)
      reductions.insert(entry.getKind());
  }
  // The elements that ranks need, and those that they need from others. A
  // reduction doesn't move elements between blocks.
  int64_t moved = getTotalShared(type.getShape(), to.getDims(), to.getDims());
  int64_t missing =
      moved - getTotalShared(type.getShape(), from.getDims(), to.getDims());
  if (reductions.empty())
    moved = missing;
  else
    moved += (n - 2) * problems * type.getNumElements();
  price.bytes = moved * getElementBytes(type.getElementType());
  price.collectives = reductions.size() + (missing != 0);
  // One exchange moves exactly what ranks need and don't have, so the price is
  // exact.
  bool isOne = options.oneShot && reductions.empty() && moved != 0;
  price.isBound = !isOne && !(reductions.empty() && isSlice(from, to));
  return price;
}
