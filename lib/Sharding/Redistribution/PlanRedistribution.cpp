//===- PlanRedistribution.cpp - Steps between two placements --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanRedistribution.h"
#include "RedistributionSearch.h"
#include "tp/Dialect/TP/Elements.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

namespace {

/// The most states that a search over parts of mesh dimensions looks at.
constexpr int64_t kMaxPartStates = 2000;

/// Plans one redistribution.
class Planning {
public:
  Planning(MeshOp mesh, ShardingAttr from, ShardingAttr to,
           RankedTensorType type, RedistributionOptions options,
           uint64_t &numStates);
  RedistributionPlan run();

private:
  struct Solution {
    RedistributionProblem problem;
    std::unique_ptr<Space> space;
    SmallVector<Move> moves;
    int64_t bytes = 0;
  };

  int64_t getMaxReductions() const;
  bool hasPending() const { return target.getPartial() != from.getPartial(); }
  int64_t getBound() const;
  void attempt(const RedistributionProblem &problem, Granularity granularity,
               bool all, SearchOptions search);
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
  uint64_t &numStates;
  std::vector<TensorBlock> source, wanted;

  std::optional<Solution> best;
  SmallVector<RedistributionStep> steps;
  SmallVector<SmallVector<int64_t>> view;
  SmallVector<int64_t> received;
  /// The largest block so far, in elements.
  int64_t peak = 0;
};

} // namespace

static ShardingAttr dropUnitAxes(ShardingAttr sharding, MeshOp mesh) {
  for (int64_t i = 0, e = mesh.getNumAxes(); i < e; ++i)
    if (mesh.getAxisSizes()[i] == 1)
      sharding = sharding.without(mesh.getAxisName(i));
  return sharding;
}

Planning::Planning(MeshOp mesh, ShardingAttr from, ShardingAttr to,
                   RankedTensorType type, RedistributionOptions options,
                   uint64_t &numStates)
    : mesh(mesh), from(dropUnitAxes(from, mesh)),
      target(dropUnitAxes(to, mesh)), type(type), options(options),
      numStates(numStates), received(mesh.getNumRanks(), 0) {
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

void Planning::attempt(const RedistributionProblem &problem,
                       Granularity granularity, bool all,
                       SearchOptions search) {
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
  RedistributionProblem plain{SmallVector<int64_t>(type.getShape()), from, end};
  attempt(plain, Granularity::Common, /*all=*/false, search);
  if (!best)
    attempt(plain, Granularity::Mentioned, /*all=*/false, search);
  if (options.oneShot)
    return;
  int64_t bound = getBound();
  auto isOptimal = [&]() { return best && best->bytes <= bound; };
  std::optional<RedistributionProblem> viewed;
  if (!isOptimal())
    viewed = findView(mesh, plain);
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
    most = getLargest(wanted);
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

RedistributionPlan redistribution::planRedistribution(
    MeshOp mesh, ShardingAttr from, ShardingAttr to, RankedTensorType type,
    RedistributionOptions options, uint64_t &numStates) {
  return Planning(mesh, from, to, type, options, numStates).run();
}
